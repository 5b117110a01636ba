import { useSyncExternalStore } from 'react'

import { chooseTheme, chosenTheme, onThemeChange, type Theme, THEMES } from '@/lib/theme'

const LABEL: Record<Theme, string> = { system: 'Auto', light: 'Light', dark: 'Dark' }

export function ThemeSwitch() {
  const chosen = useSyncExternalStore(onThemeChange, chosenTheme)
  return (
    <select
      className="button quiet"
      aria-label="Theme"
      title="Theme"
      value={chosen}
      onChange={(event) => {
        chooseTheme(THEMES.find((theme) => theme === event.target.value) ?? 'system')
      }}
    >
      {THEMES.map((theme) => (
        <option key={theme} value={theme}>
          {LABEL[theme]}
        </option>
      ))}
    </select>
  )
}
