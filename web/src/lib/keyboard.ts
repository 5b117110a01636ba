export interface Pressed {
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
