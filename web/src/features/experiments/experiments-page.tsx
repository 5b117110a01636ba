import './experiments.css'

import { keepPreviousData, useInfiniteQuery, useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'

import { meQuery, onlyReads } from '@/api/account'
import { experimentsQuery, groupMembersQuery, groupsQuery, LISTS_KEY } from '@/api/experiment-list'
import { toProblem } from '@/api/problem'
import type { ExperimentGroup, ListedExperiment } from '@/api/types'
import { useShortcuts } from '@/lib/keyboard'
import { MoreButton } from '@/lib/ui/more-button'
import { ProblemNotice } from '@/lib/ui/notice'
import { useNow } from '@/lib/ui/relative-time'
import { toastFailure } from '@/lib/ui/toasts'
import { useTitle } from '@/lib/use-title'

import { BulkBar } from './bulk-bar'
import { ColumnMenu, useColumns } from './column-menu'
import { NoExperiment, NoMatch } from './empty-list'
import { ExperimentTable } from './experiment-table'
import { FilterBar, SortField } from './filter-bar'
import { SavedViews } from './saved-views'
import { type Ticks, useSelection } from './selection'
import { experimentRows, experimentsOf, groupRows, type TableRow } from './table-rows'
import {
  type ChangeExperimentListUrl,
  type ExperimentListUrlState,
  filtersOf,
  isFiltered,
  openGroups,
  toggleOpen,
  toggleTag,
  wantedOf,
  withoutFilters,
} from './url-state'

interface Props {
  view: ExperimentListUrlState
  onView: ChangeExperimentListUrl
}

export function ExperimentsPage({ view, onView }: Props) {
  useTitle('Experiments')
  const { data: me } = useQuery(meQuery)
  const projects = me?.projects ?? []
  const reads = onlyReads(me) ?? true
  const { list, rows } = useTableRows(view)
  const shown = experimentsOf(rows)
  const ticks = useSelection(rows, JSON.stringify(filtersOf(view)))
  const measured = rows.map((row) => (row.kind === 'group' ? row.group.newest : row.experiment))
  const { ids, columns, choose } = useColumns(view, measured, projects.length, onView)
  const now = useNow(10_000)
  const tickGroup = useTickGroup(view, ticks)
  useRowKeys(shown, ticks)
  const clear = () => {
    onView(withoutFilters)
  }

  return (
    <main className="page full">
      <header className="page-header">
        <h1>Experiments</h1>
        <Link to="/new" className="button primary">
          New experiment
        </Link>
      </header>
      <FilterBar view={view} projects={projects} onView={onView} onClear={clear}>
        <SortField
          sort={view.sort}
          onSort={(sort) => {
            onView((before) => ({ ...before, sort }))
          }}
        />
        {me && <SavedViews person={me.name} view={view} onView={onView} />}
        <ColumnMenu shown={ids} onChoose={choose} />
      </FilterBar>
      {list.error && <ProblemNotice problem={toProblem(list.error)} />}
      {list.isSuccess && rows.length === 0 && (isFiltered(view) ? <NoMatch onClear={clear} /> : <NoExperiment />)}
      {rows.length > 0 && (
        <ExperimentTable
          rows={rows}
          columns={columns}
          context={{
            now,
            tags: view.tag ?? [],
            onTag: (tag) => {
              onView((before) => toggleTag(before, tag))
            },
          }}
          ticks={ticks}
          onTickGroup={tickGroup}
          onOpenGroup={(key) => {
            onView((before) => toggleOpen(before, key))
          }}
          reads={reads}
          sort={view.sort}
          onSort={(sort) => {
            onView((before) => ({ ...before, sort }))
          }}
        />
      )}
      <MoreButton list={list} />
      <BulkBar ticks={ticks} reads={reads} />
    </main>
  )
}

/** Ticks all experiments of a group, which may have to be fetched first. */
function useTickGroup(view: ExperimentListUrlState, ticks: Ticks) {
  const queryClient = useQueryClient()
  return (group: ExperimentGroup, on: boolean) => {
    queryClient.query(groupMembersQuery(wantedOf(view), group.key)).then(
      (members) => {
        ticks.tickAll(members, on)
      },
      (error: unknown) => {
        toastFailure('Selecting the group', toProblem(error))
        void queryClient.invalidateQueries({ queryKey: LISTS_KEY })
      },
    )
  }
}

/** j and k move through the rows, x ticks the one with the focus, X all from the last one ticked to it. */
function useRowKeys(rows: readonly ListedExperiment[], ticks: Ticks): void {
  const tick = (range: boolean) => {
    const id = focusedRow()?.dataset.row
    const experiment = rows.find((row) => row.id === id)
    if (experiment) ticks.tick(experiment, range)
  }
  useShortcuts({
    j: () => {
      moveFocus(1)
    },
    k: () => {
      moveFocus(-1)
    },
    x: () => {
      tick(false)
    },
    X: () => {
      tick(true)
    },
  })
}

function focusedRow(): HTMLElement | null {
  return document.activeElement?.closest<HTMLElement>('.experiments tbody tr') ?? null
}

/** To the row below or above, or to the first where none has the focus. */
function moveFocus(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('.experiments tbody tr')]
  const now = rows.findIndex((row) => row === focusedRow())
  const next = now < 0 ? rows[0] : rows[now + by]
  next?.querySelector<HTMLElement>('.cell-name :is(a, button)')?.focus()
}

/** The rows of the table as the server gives them, and the list that has more of them. */
function useTableRows(view: ExperimentListUrlState) {
  const wanted = wantedOf(view)
  const grouped = view.group === 'seed'
  const alone = useInfiniteQuery({ ...experimentsQuery(wanted), placeholderData: keepPreviousData, enabled: !grouped })
  const groups = useInfiniteQuery({ ...groupsQuery(wanted), placeholderData: keepPreviousData, enabled: grouped })
  const open = grouped ? openGroups(view) : []
  const inside = useQueries({ queries: open.map((key) => groupMembersQuery(wanted, key)) })

  if (!grouped) {
    const rows: TableRow[] = experimentRows(alone.data?.pages.flatMap(({ items }) => items) ?? [])
    return { list: alone, rows }
  }
  const members = Object.fromEntries(open.map((key, index) => [key, inside[index]?.data ?? []]))
  return { list: groups, rows: groupRows(groups.data?.pages.flatMap(({ items }) => items) ?? [], open, members) }
}
