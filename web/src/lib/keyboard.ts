import { useEffect, useRef } from 'react'

interface Pressed {
  /** The keys that were completed, as their shortcut names them: "g e". */
  completed: string | undefined
  /** The keys of a shortcut that is not complete yet. */
  begun: string
}

/** The state after `key`, where `begun` are the keys so far and `known` the keys of all shortcuts. */
export function press(begun: string, key: string, known: readonly string[]): Pressed {
  const keys = begun === '' ? key : `${begun} ${key}`
  if (known.includes(keys)) return { completed: keys, begun: '' }
  if (known.some((other) => other.startsWith(`${keys} `))) return { completed: undefined, begun: keys }
  return begun === '' ? { completed: undefined, begun: '' } : press('', key, known)
}

/** Where keys are text; a box to tick takes the blank alone. */
const FIELDS = 'input:not([type="checkbox"]), textarea, select, [contenteditable]:not([contenteditable="false"])'

/** True if a key belongs to a shortcut: not to typed text, not to the browser, and not below an open dialog. */
export function isForPage(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return false
  if (document.querySelector('dialog[open]') !== null) return false
  const typing = event.target instanceof Element && event.target.closest(FIELDS) !== null
  return !typing || event.key === 'Escape'
}

const PAUSE_MILLISECONDS = 1500

/**
 * Runs shortcuts wherever the focus is, except where somebody types. Each is named by the keys to press one after the
 * other, as the browser names them: "g e". The browser does nothing with such a key unless its shortcut returns false.
 */
export function useShortcuts(shortcuts: Readonly<Record<string, () => unknown>>): void {
  const latest = useRef(shortcuts)
  useEffect(() => {
    latest.current = shortcuts
  })

  useEffect(() => {
    let begun = ''
    let forget: ReturnType<typeof setTimeout> | undefined
    const onKey = (event: KeyboardEvent) => {
      if (!isForPage(event)) return
      const pressed = press(begun, event.key, Object.keys(latest.current))
      begun = pressed.begun
      clearTimeout(forget)
      forget = setTimeout(() => {
        begun = ''
      }, PAUSE_MILLISECONDS)
      if (pressed.completed === undefined) return
      const done = latest.current[pressed.completed]?.()
      if (done !== false) event.preventDefault() // "/" must not land in the field that it leads to
    }
    document.addEventListener('keydown', onKey)
    return () => {
      clearTimeout(forget)
      document.removeEventListener('keydown', onKey)
    }
  }, [])
}

/** The item that a key leads to among `count` items in a circle; undefined for any other key. */
export function keyTarget(key: string, index: number, count: number): number | undefined {
  if (key === 'ArrowRight') return (index + 1) % count
  if (key === 'ArrowLeft') return (index - 1 + count) % count
  if (key === 'Home') return 0
  return key === 'End' ? count - 1 : undefined
}
