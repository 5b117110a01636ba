import './toast.css'

import { useSyncExternalStore } from 'react'

import { nextStep } from '@/lib/next-step'
import { dismissToast, onToasts, shownToasts, type Toast } from '@/lib/toasts'

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
    </section>
  )
}
