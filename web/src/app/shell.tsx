import { useQuery } from '@tanstack/react-query'
import { Link, Outlet } from '@tanstack/react-router'

import { infoQuery } from '@/api/queries'
import { AccountMenu } from '@/features/account/account-menu'
import { ThemeSwitch } from '@/lib/ui/theme-switch'
import { Toasts } from '@/lib/ui/toasts'

import { Shortcuts } from './shortcuts'

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
