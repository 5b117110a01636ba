import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet } from '@tanstack/react-router'

import { infoQuery, signOut } from '@/api/queries'

/** The frame around every page. */
export function Shell() {
  const { data: info } = useQuery(infoQuery)
  const queryClient = useQueryClient()
  const leave = async () => {
    await signOut()
    await queryClient.resetQueries()
  }

  return (
    <>
      <header className="shell">
        <Link to="/" className="brand">
          <img src="/favicon.svg" alt="" width="24" height="24" />
          Ferret
        </Link>
        <button type="button" className="button quiet" onClick={() => void leave()}>
          Sign out
        </button>
      </header>
      <Outlet />
      <footer className="shell muted small">
        {info && `Ferret ${info.version} · ${info.database} · ${info.storage} · wire format ${info.formats.wire}`}
      </footer>
    </>
  )
}
