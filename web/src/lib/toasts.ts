import type { Problem } from './ui/problem-notice'

export interface Toast {
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

/** Dismisses the newest toast; returns false without one. */
export function dismissNewestToast(): boolean {
  const newest = shown.at(-1)
  if (newest !== undefined) dismissToast(newest.action)
  return newest !== undefined
}

export function shownToasts(): readonly Toast[] {
  return shown
}

export function onToasts(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
