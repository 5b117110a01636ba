import './toasts.css'

import { useSyncExternalStore } from 'react'

import { NextStep, type Problem } from './notice'

interface Toast {
  /** The action that failed, in words: "Pause". Each action has one toast at most. */
  action: string
  problem: Problem
}

/** More than these would cover the page; the oldest go first. */
const MOST = 3

let shown: readonly Toast[] = []
const listeners = new Set<() => void>()

function show(next: readonly Toast[]): void {
  shown = next
  for (const listener of listeners) listener()
}

/** Shows that an action failed, until the user dismisses the toast or the same action succeeds. */
export function toastFailure(action: string, problem: Problem): void {
  show([...shown.filter((toast) => toast.action !== action), { action, problem }].slice(-MOST))
}

export function dismissToast(action: string): void {
  if (shown.some((toast) => toast.action === action)) show(shown.filter((toast) => toast.action !== action))
}

export function dismissToasts(): void {
  show([])
}

/** Dismisses the newest toast; returns false without one. */
export function dismissNewestToast(): boolean {
  const newest = shown.at(-1)
  if (newest !== undefined) dismissToast(newest.action)
  return newest !== undefined
}

export function shownToasts(): readonly Toast[] {
  return shown
}

function onToasts(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

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
