import { useQuery } from '@tanstack/react-query'
import { Link, Outlet } from '@tanstack/react-router'

import { infoQuery } from '@/api/queries'
import { AccountMenu } from '@/features/account/account-menu'

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
        <AccountMenu />
      </header>
      <Outlet />
      <footer className="shell muted small">
        {info && `Ferret ${info.version} · ${info.database} · ${info.storage} · wire format ${info.formats.wire}`}
      </footer>
    </>
  )
}
