import { useEffect, useRef } from 'react'

import { isForPage, press } from './keyboard'

const PAUSE_MILLISECONDS = 1500

/**
 * Runs shortcuts wherever the focus is, except where somebody types. Each is named by the keys to press one after the
 * other, as the browser names them: "g e".
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
      event.preventDefault() // "/" must not land in the field that it leads to
      latest.current[pressed.completed]?.()
    }
    document.addEventListener('keydown', onKey)
    return () => {
      clearTimeout(forget)
      document.removeEventListener('keydown', onKey)
    }
  }, [])
}
