import './people.css'

import { useQuery } from '@tanstack/react-query'

import { covers, meQuery } from '@/api/people'
import { Tabs } from '@/lib/ui/tabs'
import { useTitle } from '@/lib/use-title'

import { AuditTab } from './audit-tab'
import { UsersTab } from './users-tab'
import { TABS, type View } from './view'

interface Props {
  view: View
  onView: (change: (view: View) => View) => void
}

/** Who has an account, and what everybody did: for administrators. */
export function PeoplePage({ view, onView }: Props) {
  const { data: me } = useQuery(meQuery)
  useTitle('People')
  if (me === undefined) return <main className="page" />
  if (!covers(me.role, 'admin')) return <NotForYou role={me.role} />
  const change = (changes: Partial<View>) => {
    onView((before) => ({ ...before, ...changes }))
  }
  return (
    <main className="page">
      <h1>People</h1>
      <Tabs
        label="Users and the audit log"
        tabs={TABS}
        chosen={view.tab ?? 'users'}
        onChoose={(tab) => {
          change({ tab: tab === 'audit' ? 'audit' : undefined })
        }}
      >
        {view.tab === 'audit' ? <AuditTab view={view} onView={change} /> : <UsersTab me={me} />}
      </Tabs>
    </main>
  )
}

function NotForYou({ role }: { role: string }) {
  return (
    <main className="page">
      <section className="empty">
        <h1>For administrators</h1>
        <p className="muted">
          You are a {role}. Users and the audit log are looked after by administrators: ask one of them.
        </p>
      </section>
    </main>
  )
}
