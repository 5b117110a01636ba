/** The themes to choose from. `public/theme.js` reads the choice before the first paint. */
export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

export const THEME_KEY = 'ferret.theme'
const CHANGED = 'ferret-theme'

/** The choice in a browser that keeps nothing for this site: it lasts as long as the page. */
let notKept: Theme | undefined

const prefersDark = () => window.matchMedia('(prefers-color-scheme: dark)')

/** True if `theme` is dark on a system that is dark or not. */
export function isDark(theme: Theme, systemIsDark: boolean): boolean {
  return theme === 'dark' || (theme === 'system' && systemIsDark)
}

export function chosenTheme(): Theme {
  return notKept ?? THEMES.find((theme) => theme === remembered()) ?? 'system'
}

export function chooseTheme(theme: Theme): void {
  try {
    window.localStorage.setItem(THEME_KEY, theme)
    notKept = undefined
  } catch {
    notKept = theme
  }
  paint(theme)
}

function remembered(): string | null {
  try {
    return window.localStorage.getItem(THEME_KEY)
  } catch {
    return null
  }
}

function paint(theme: Theme): void {
  document.documentElement.dataset.theme = isDark(theme, prefersDark().matches) ? 'dark' : 'light'
  window.dispatchEvent(new Event(CHANGED))
}

/** Follows the system and the browser's other tabs. */
export function followTheme(): () => void {
  const repaint = () => {
    paint(chosenTheme())
  }
  const elsewhere = ({ key }: StorageEvent) => {
    if (key === THEME_KEY) repaint()
  }
  const system = prefersDark()
  system.addEventListener('change', repaint)
  window.addEventListener('storage', elsewhere)
  return () => {
    system.removeEventListener('change', repaint)
    window.removeEventListener('storage', elsewhere)
  }
}

/** Calls the listener when the page's colours have changed, so that canvases can be redrawn. */
export function onThemeChange(listener: () => void): () => void {
  window.addEventListener(CHANGED, listener)
  return () => {
    window.removeEventListener(CHANGED, listener)
  }
}

/** The lines' colours in order: custom properties, read at every drawing so that a theme switches live. */
export const LINE_COLOURS = ['--accent', '--second']

export function colour(property: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(property)
}
