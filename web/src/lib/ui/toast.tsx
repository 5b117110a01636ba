import './toast.css'

import { useSyncExternalStore } from 'react'

import { dismissToast, onToasts, shownToasts, type Toast } from '@/lib/toasts'

import { NextStep } from './next-step'

/** More than these would cover the page. */
const MOST_ERRORS = 6

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
  const told = problem.errors.slice(0, MOST_ERRORS)
  const more = problem.errors.length - told.length
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
      {told.map((error) => (
        <p key={`${error.field} ${error.message}`}>
          <code>{error.field}</code> {error.message}
        </p>
      ))}
      {more > 0 && <p>and {more} more</p>}
      <NextStep problem={problem} />
    </section>
  )
}
