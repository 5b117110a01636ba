import { nextStep } from '@/lib/next-step'

interface Props {
  problem: { code: string; requestId?: string | undefined }
}

/** What to do about a problem, and what an administrator needs to look it up. */
export function WhatNext({ problem }: Props) {
  return (
    <>
      <p>
        <strong>What to do next:</strong> {nextStep(problem.code)}
      </p>
      <p className="muted small">
        <code>{problem.code}</code>
        {problem.requestId && (
          <>
            {' · request '}
            <code>{problem.requestId}</code>
          </>
        )}
      </p>
    </>
  )
}
