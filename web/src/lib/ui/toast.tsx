import './toast.css'

import { useSyncExternalStore } from 'react'

import { dismissToast, onToasts, shownToasts, type Toast } from '@/lib/toasts'

import { WhatNext } from './what-next'

/** Actions that failed, above the page; always there, because screen readers announce only what a known region gets. */
export function Toasts() {
  const toasts = useSyncExternalStore(onToasts, shownToasts)
  return (
    <div className="toasts" role="status" aria-live="polite" aria-atomic="false" data-testid="toasts">
      {toasts.map((toast) => (
        <ToastCard key={toast.action} {...toast} />
      ))}
    </div>
  )
}

function ToastCard({ action, problem }: Toast) {
  const first = problem.errors[0]
  return (
    <section className="toast">
      <h2>{action} failed</h2>
      <button
        type="button"
        className="copy-button"
        aria-label={`Dismiss: ${action} failed`}
        onClick={() => {
          dismissToast(action)
        }}
      >
        Dismiss
      </button>
      <p>
        {problem.title}. {problem.detail}
      </p>
      {first && (
        <p>
          <code>{first.field}</code> {first.message}
        </p>
      )}
      <WhatNext problem={problem} />
    </section>
  )
}
