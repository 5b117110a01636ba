export interface Pressed {
  /** The keys that were completed, as their shortcut names them: "g e". */
  completed: string | undefined
  /** What has begun and waits for its next key. */
  begun: string
}

/** What `key` makes of what has `begun`, where `known` are the keys of all shortcuts. */
export function press(begun: string, key: string, known: readonly string[]): Pressed {
  const keys = begun === '' ? key : `${begun} ${key}`
  if (known.includes(keys)) return { completed: keys, begun: '' }
  if (known.some((other) => other.startsWith(`${keys} `))) return { completed: undefined, begun: keys }
  return begun === '' ? { completed: undefined, begun: '' } : press('', key, known)
}

/** Where keys are text; a box to tick takes the blank alone. */
const FIELDS = 'input:not([type="checkbox"]), textarea, select, [contenteditable]:not([contenteditable="false"])'

/** Whether a key is a shortcut's: no text that somebody types, no key of the browser's, nothing below an open dialog. */
export function isForPage(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return false
  if (document.querySelector('dialog[open]') !== null) return false
  const typing = event.target instanceof Element && event.target.closest(FIELDS) !== null
  return !typing || event.key === 'Escape'
}
