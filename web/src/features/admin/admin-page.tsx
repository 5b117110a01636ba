import { ProblemNotice } from '@/lib/ui/notice'
import { toProblem } from '@/api/problem'
import './admin.css'

import { useQuery } from '@tanstack/react-query'

import { covers, meQuery } from '@/api/account'
import { oneOf } from '@/lib/search-params'
import { Tabs } from '@/lib/ui/tabs'
import { useTitle } from '@/lib/use-title'

import { AuditTab } from './audit-tab'
import { ProjectsTab } from './projects-tab'
import { type AdminUrlState, OTHER_TABS, TABS } from './url-state'
import { UsersTab } from './users-tab'

interface Props {
  view: AdminUrlState
  onView: (change: (view: AdminUrlState) => AdminUrlState) => void
}

/** Users, projects and the audit log, for administrators. */
export function AdminPage({ view, onView }: Props) {
  const { data: me, error } = useQuery(meQuery)
  useTitle('People')
  if (me === undefined) return <main className="page">{error && <ProblemNotice problem={toProblem(error)} />}</main>
  if (!covers(me.role, 'admin')) return <NotForYou role={me.role} />
  const change = (changes: Partial<AdminUrlState>) => {
    onView((before) => ({ ...before, ...changes }))
  }
  return (
    <main className="page">
      <h1>People</h1>
      <Tabs
        label="Users, projects and the audit log"
        tabs={TABS}
        chosen={view.tab ?? 'users'}
        onChoose={(tab) => {
          change({ tab: oneOf(OTHER_TABS, tab) })
        }}
      >
        {view.tab === undefined && <UsersTab me={me} user={view.user} />}
        {view.tab === 'projects' && <ProjectsTab />}
        {view.tab === 'audit' && <AuditTab view={view} onView={change} />}
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
          You are a {role}. Administrators manage users, projects and the audit log: ask one of them.
        </p>
      </section>
    </main>
  )
}
