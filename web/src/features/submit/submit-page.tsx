import './submit.css'

import { useQuery } from '@tanstack/react-query'

import { meQuery, onlyReads } from '@/api/account'
import { catalogQuery } from '@/api/catalog'
import { originalQuery } from '@/api/drafts'
import { toProblem } from '@/api/problem'
import { experimentQuery } from '@/api/queries'
import type { JsonSchema } from '@/lib/defaults'
import { Notice, ProblemNotice } from '@/lib/ui/notice'
import { useTitle } from '@/lib/use-title'

import { Editor } from './editor'
import type { Catalog } from './form'
import type { SubmitUrlState } from './url-state'
import { keptDraft } from './use-draft'

interface Props {
  view: SubmitUrlState
  onView: (change: (view: SubmitUrlState) => SubmitUrlState) => void
}

/** A specification as a form: a new one, or a changed copy of `view.from`. */
export function SubmitPage({ view, onView }: Props) {
  useTitle(view.from === undefined ? 'New experiment' : 'Clone')
  const { data: me, error } = useQuery(meQuery)
  if (me === undefined) return error && <ProblemNotice problem={toProblem(error)} />
  return (
    <main className="page">
      {onlyReads(me) ? <OnlyReads /> : <Loaded view={view} onView={onView} projects={me.projects} />}
    </main>
  )
}

function OnlyReads() {
  return (
    <Notice title="You are a viewer" testId="only-reads">
      <p>Only researchers can submit experiments. Ask an administrator of the server for that role.</p>
    </Notice>
  )
}

/** The form, once everything that it needs is loaded. */
function Loaded({ view, onView, projects }: Props & { projects: string[] }) {
  const { catalog, error } = useCatalog()
  const { from } = view
  const original = useQuery({ ...experimentQuery(from ?? ''), enabled: from !== undefined, refetchInterval: false })
  const said = useQuery({ ...originalQuery(from ?? ''), enabled: from !== undefined })
  const failure = error ?? original.error ?? said.error
  if (failure) return <ProblemNotice problem={toProblem(failure)} />
  if (catalog === undefined || (from !== undefined && !(said.data && original.data))) {
    return <p className="muted">Loading…</p>
  }
  const begun = { spec: said.data?.spec ?? {}, project: from === undefined ? only(projects) : original.data?.project }
  return (
    <Editor
      key={from}
      name={from}
      catalog={catalog}
      original={from === undefined ? undefined : original.data}
      beginning={keptDraft(from, window.sessionStorage) ?? begun}
      afresh={begun}
      projects={projects}
      view={view}
      onView={onView}
    />
  )
}

function useCatalog(): { catalog: Catalog | undefined; error: Error | null } {
  const specification = useQuery(catalogQuery('experiments'))
  const algorithm = useQuery(catalogQuery('algorithms'))
  const dataset = useQuery(catalogQuery('datasets'))
  const partition = useQuery(catalogQuery('partitions'))
  const error = specification.error ?? algorithm.error ?? dataset.error ?? partition.error
  const schema: JsonSchema | undefined = specification.data?.items[0]?.schema
  if (schema === undefined || !algorithm.data || !dataset.data || !partition.data) return { catalog: undefined, error }
  const entries = { algorithm: algorithm.data.items, dataset: dataset.data.items, partition: partition.data.items }
  return { catalog: { specification: schema, entries }, error }
}

/** A user with one project need not name it. */
function only(projects: string[]): string | undefined {
  return projects.length > 1 ? projects[0] : undefined
}
