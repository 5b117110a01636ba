import './alerts.css'

import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'

import { meQuery, onlyReads } from '@/api/account'
import { alertsQuery } from '@/api/alerts'
import { toProblem } from '@/api/problem'
import type { CreatedAlert, CurrentUser } from '@/api/types'
import { Command } from '@/lib/ui/copy-button'
import { Notice, ProblemNotice } from '@/lib/ui/notice'
import { useNow } from '@/lib/ui/relative-time'
import { useTitle } from '@/lib/use-title'

import { AlertCard } from './alert-card'
import { CreateAlertButton } from './create-alert-button'
import { type AlertsUrlState, projectOf } from './url-state'

interface Props {
  view: AlertsUrlState
  onView: (change: (view: AlertsUrlState) => AlertsUrlState) => void
}

/** A project's alerts, which report by webhook or e-mail what happens to its experiments. */
export function AlertsPage({ view, onView }: Props) {
  const { data: me, error } = useQuery(meQuery)
  useTitle('Alerts')
  const project = me && projectOf(view, me.projects)
  return (
    <main className="page">
      {error && <ProblemNotice problem={toProblem(error)} />}
      {me &&
        (project === undefined ? (
          <NoProject />
        ) : (
          <Loaded key={project} me={me} project={project} view={view} onView={onView} />
        ))}
    </main>
  )
}

function NoProject() {
  return (
    <section className="empty">
      <h1>Alerts</h1>
      <p className="muted">
        Alerts belong to projects. You are not in a project yet: ask an administrator to add you to one.
      </p>
    </section>
  )
}

function Loaded({ me, project, view, onView }: Props & { me: CurrentUser; project: string }) {
  const { data, error } = useQuery(alertsQuery(project))
  const [made, setMade] = useState<CreatedAlert>()
  const now = useNow(1000)
  const changes = onlyReads(me) === false
  return (
    <>
      <header className="page-header">
        <div>
          <h1>Alerts</h1>
          <p className="muted">Alerts report what happens to the experiments of {project}.</p>
        </div>
        <div className="page-actions">
          <ProjectChoice projects={me.projects} chosen={project} onView={onView} />
          {changes && <CreateAlertButton project={project} experiment={view.experiment} onMade={setMade} />}
        </div>
      </header>
      {error && <ProblemNotice problem={toProblem(error)} />}
      {made?.secret && <Secret alert={made} />}
      {data?.items.length === 0 && <NoAlert project={project} changes={changes} />}
      {data?.items.map((alert) => (
        <AlertCard key={alert.id} alert={alert} changes={changes} now={now} />
      ))}
    </>
  )
}

function ProjectChoice({ projects, chosen, onView }: { projects: string[]; chosen: string; onView: Props['onView'] }) {
  if (projects.length < 2) return null
  return (
    <select
      aria-label="Project"
      className="button"
      value={chosen}
      onChange={({ target }) => {
        onView(() => ({ project: target.value }))
      }}
    >
      {[...new Set([...projects, chosen])].map((project) => (
        <option key={project}>{project}</option>
      ))}
    </select>
  )
}

function Secret({ alert: { address, secret } }: { alert: CreatedAlert }) {
  return (
    <Notice title="Copy the key now: it is not shown again" testId="alert-secret">
      <p>With this key {address} checks that a message comes from this server and is unchanged.</p>
      <Command text={secret ?? ''} label="key" />
    </Notice>
  )
}

function NoAlert({ project, changes }: { project: string; changes: boolean }) {
  return (
    <section className="empty">
      <h2>No alerts yet</h2>
      {changes ? (
        <>
          <p className="muted">An alert sends a webhook or an e-mail when an experiment ends or makes no progress.</p>
          <Command
            text={`ferret alert create --project ${project} --webhook https://example.org/hook`}
            label="command"
          />
        </>
      ) : (
        <p className="muted">You are a viewer: a researcher of the project can create alerts.</p>
      )}
    </section>
  )
}
