import { useQuery } from '@tanstack/react-query'
import { Link, useLocation } from '@tanstack/react-router'

import { covers, meQuery } from '@/api/account'

const PAGES = [
  { to: '/', label: 'Experiments', least: 'viewer' },
  { to: '/compare', label: 'Compare', least: 'viewer' },
  { to: '/alerts', label: 'Alerts', least: 'viewer' },
  { to: '/system', label: 'System', least: 'admin' },
  { to: '/people', label: 'People', least: 'admin' },
] as const

/** Links to the pages that the user may open; the current one is marked. */
export function TopNavigation() {
  const { data: me } = useQuery(meQuery)
  const path = useLocation({ select: ({ pathname }) => pathname })
  return (
    <nav className="top-navigation" aria-label="Pages">
      {PAGES.filter(({ least }) => covers(me?.role ?? 'viewer', least)).map(({ to, label }) => (
        <Link key={to} to={to} activeOptions={ONLY_THIS} aria-current={isInside(path, to) ? 'true' : undefined}>
          {label}
        </Link>
      ))}
    </nav>
  )
}

/** The router then marks only the page itself, with any filters, as the current page. */
const ONLY_THIS = { exact: true, includeSearch: false } as const

/** True for an experiment and a new one: their part of the dashboard is that of the list. */
function isInside(path: string, page: string): boolean {
  return page === '/' && (path === '/new' || path.startsWith('/experiments/'))
}
