import './experiments.css'

import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'

import { meQuery, onlyReads } from '@/api/account'
import { groupMembersQuery, LISTS_KEY } from '@/api/experiment-list'
import { toProblem } from '@/api/problem'
import type { ExperimentGroup } from '@/api/types'
import { MoreButton } from '@/lib/ui/more-button'
import { ProblemNotice } from '@/lib/ui/notice'
import { useNow } from '@/lib/ui/relative-time'
import { toastFailure } from '@/lib/ui/toasts'
import { useTitle } from '@/lib/use-title'

import { BulkBar } from './bulk-bar'
import { ColumnMenu } from './column-menu'
import { NoExperiment, NoMatch } from './empty-list'
import { ExperimentTable } from './experiment-table'
import { FilterBar } from './filter-bar'
import { type Ticks, useSelection } from './selection'
import { SortField } from './sort-field'
import { experimentsOf } from './table-rows'
import {
  type ChangeExperimentListUrl,
  type ExperimentListUrlState,
  isFiltered,
  toggleOpen,
  toggleTag,
  wantedOf,
  withoutFilters,
} from './url-state'
import { useColumns } from './use-columns'
import { useRowKeys } from './use-row-keys'
import { useTableRows } from './use-table-rows'

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
  const ticks = useSelection(shown)
  const measured = rows.map((row) => (row.kind === 'group' ? row.group.newest : row.experiment))
  const { ids, columns, choose } = useColumns(view, measured, projects.length, onView)
  const now = useNow(10_000)
  const tickGroup = useTickGroup(view, ticks)
  useRowKeys(shown, ticks)
  // A new key resets the name field, which does not follow the address.
  const [cleared, setCleared] = useState(0)
  const clear = () => {
    setCleared(cleared + 1)
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
      <FilterBar key={cleared} view={view} projects={projects} onView={onView} onClear={clear}>
        <SortField
          sort={view.sort}
          onSort={(sort) => {
            onView((before) => ({ ...before, sort }))
          }}
        />
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
