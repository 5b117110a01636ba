// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { chooseTheme, chosenTheme, followTheme, isDark, onThemeChange, type Theme, THEME_KEY } from './theme'

const EARLY = Object.values(
  import.meta.glob<string>('/public/theme.js', { query: '?raw', import: 'default', eager: true }),
)[0]

class System extends EventTarget {
  matches = false
}

let system: System

beforeEach(() => {
  system = new System()
  vi.stubGlobal('matchMedia', () => system)
})

afterEach(() => {
  window.localStorage.clear()
  delete document.documentElement.dataset.theme
  vi.unstubAllGlobals()
})

const painted = () => document.documentElement.dataset.theme

test.each<[Theme, boolean, boolean]>([
  ['system', false, false],
  ['system', true, true],
  ['light', true, false],
  ['dark', false, true],
])('%s on a system that is dark (%s): %s', (theme, systemIsDark, dark) => {
  expect(isDark(theme, systemIsDark)).toBe(dark)
  window.localStorage.setItem(THEME_KEY, theme)
  system.matches = systemIsDark
  runEarly()
  expect(painted()).toBe(dark ? 'dark' : 'light')
})

/** The script that index.html runs before the first paint. */
function runEarly() {
  if (EARLY === undefined) throw new Error('public/theme.js is gone')
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- as the browser runs the file
  const run = new Function(EARLY) as () => void
  run()
}

test('a choice is painted, stored and announced', () => {
  const told = vi.fn()
  const stop = onThemeChange(told)
  chooseTheme('dark')
  expect([painted(), chosenTheme()]).toEqual(['dark', 'dark'])
  stop()
  chooseTheme('light')
  expect(told).toHaveBeenCalledTimes(1)
})

test('an unknown theme gives the system’s', () => {
  window.localStorage.setItem(THEME_KEY, 'pink')
  expect(chosenTheme()).toBe('system')
})

test('the system’s change is followed, where nothing else was chosen', () => {
  const stop = followTheme()
  system.matches = true
  system.dispatchEvent(new Event('change'))
  expect(painted()).toBe('dark')
  chooseTheme('light')
  system.dispatchEvent(new Event('change'))
  expect(painted()).toBe('light')
  stop()
})

test('another tab’s choice is followed', () => {
  const stop = followTheme()
  window.localStorage.setItem(THEME_KEY, 'dark')
  window.dispatchEvent(new StorageEvent('storage', { key: THEME_KEY }))
  expect(painted()).toBe('dark')
  stop()
})

test('a browser that keeps nothing still changes', () => {
  vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
    throw new DOMException('denied', 'SecurityError')
  })
  chooseTheme('dark')
  expect([painted(), chosenTheme()]).toEqual(['dark', 'dark'])
  vi.restoreAllMocks()
  chooseTheme('system')
})
