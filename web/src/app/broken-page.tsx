import type { ErrorComponentProps } from '@tanstack/react-router'

import { ProblemNotice } from '@/lib/ui/notice'

/** Replaces a page that cannot be drawn, for example because an answer has an unexpected shape. */
export function BrokenPage({ error }: ErrorComponentProps) {
  const detail = error instanceof Error ? error.message : String(error)
  return (
    <main className="page narrow">
      <ProblemNotice problem={{ code: 'page.broken', title: 'This page cannot be shown', detail, errors: [] }}>
        <button
          type="button"
          className="button"
          onClick={() => {
            window.location.reload()
          }}
        >
          Reload
        </button>
      </ProblemNotice>
    </main>
  )
}
