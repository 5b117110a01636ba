import { useQuery } from '@tanstack/react-query'
import { Link, Outlet } from '@tanstack/react-router'
import { useSyncExternalStore } from 'react'

import { infoQuery } from '@/api/queries'
import { AccountMenu } from '@/features/account/account-menu'
import { chooseTheme, chosenTheme, onThemeChange, type Theme, THEMES } from '@/lib/theme'
import { Toasts } from '@/lib/ui/toasts'

import { Shortcuts } from './shortcuts'
import { TopNavigation } from './top-navigation'

/** The frame around every page. */
export function Shell() {
  const { data: info } = useQuery(infoQuery)
  return (
    <>
      <header className="shell">
        <Link to="/" className="brand">
          <img src="/favicon.svg" alt="" width="24" height="24" />
          Ferret
        </Link>
        <TopNavigation />
        <div className="shell-tools">
          <ThemeSwitch />
          <Shortcuts />
          <AccountMenu />
        </div>
      </header>
      <Outlet />
      <Toasts />
      <footer className="shell muted small">
        {info && `Ferret ${info.version} · ${info.database} · ${info.storage} · wire format ${info.formats.wire} · `}
        <a href="/docs">REST API</a>
      </footer>
    </>
  )
}

const LABEL: Record<Theme, string> = { system: 'Auto', light: 'Light', dark: 'Dark' }

function ThemeSwitch() {
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
