import { useQueryClient } from '@tanstack/react-query'
import { useRef } from 'react'

import { dismissToast, toastFailure } from '@/lib/ui/toasts'

import { answer, client } from './client'
import { LISTS_KEY } from './experiment-list'
import { ApiProblem, toProblem } from './problem'
import { experimentKey, experimentQuery } from './queries'
import type { Experiment, ExperimentChange } from './types'

function at(id: string) {
  return { path: { experiment_id: id } }
}

/** An experiment and the entity tag of its editable fields. */
export interface ReadExperiment {
  experiment: Experiment
  etag: string | null
}

export async function readForEdit(id: string): Promise<ReadExperiment> {
  const call = client.GET('/api/v1/experiments/{experiment_id}', { params: at(id) })
  const experiment = (await answer(call)) as Experiment
  return { experiment, etag: (await call).response.headers.get('ETag') }
}

/** The server refuses with `experiment.changed` if somebody edited the experiment after it was read with `etag`. */
export function editExperiment(id: string, change: ExperimentChange, etag: string | null): Promise<Experiment> {
  const params = { ...at(id), ...(etag !== null && { header: { 'If-Match': etag } }) }
  const headers = { 'Content-Type': 'application/merge-patch+json' }
  return answer(client.PATCH('/api/v1/experiments/{experiment_id}', { params, body: change, headers }))
}

/** Reads an experiment, adds some tags and removes others. */
export async function retagExperiment(id: string, more: readonly string[], fewer: readonly string[]) {
  const { experiment, etag } = await readForEdit(id)
  const gone = fewer.map(tagKey)
  const tags = [...experiment.tags, ...more].filter((tag) => !gone.includes(tagKey(tag)))
  return editExperiment(id, { tags }, etag)
}

/** Tags that differ only in upper and lower case have the same key. */
function tagKey(tag: string): string {
  return tag.trim().toLowerCase()
}

type Editable = Pick<Experiment, 'name' | 'tags' | 'notes' | 'priority'>

/**
 * Edits an experiment that was `read` when the editing began, and that the page showed as `seen`. A toast that names
 * the action reports a failure. In every case the page then shows the current experiment.
 */
function useEdit(id: string) {
  const queryClient = useQueryClient()
  return async (
    action: string,
    change: ExperimentChange,
    read: Promise<ReadExperiment>,
    seen: Partial<Editable>,
  ): Promise<boolean> => {
    try {
      const { experiment, etag } = await read
      requireSame(experiment, seen)
      queryClient.setQueryData(experimentQuery(id).queryKey, await editExperiment(id, change, etag))
      dismissToast(action)
      return true
    } catch (error) {
      toastFailure(action, toProblem(error))
      return false
    } finally {
      void queryClient.invalidateQueries({ queryKey: experimentKey(id) })
      void queryClient.invalidateQueries({ queryKey: LISTS_KEY })
    }
  }
}

/** Throws the server's error for a late edit if the page showed an older version. */
export function requireSame(now: Editable, seen: Partial<Editable>): void {
  const parts = ['name', 'tags', 'notes', 'priority'] as const
  if (parts.every((part) => seen[part] === undefined || String(seen[part]) === String(now[part]))) return
  const title = 'The experiment was edited by somebody else in the meantime'
  throw new ApiProblem({ code: 'experiment.changed', title }, 412)
}

/** Props of a field that renames the experiment. The experiment is read when the editing begins. */
export function useRename({ id, name }: { id: string; name: string }) {
  const read = useRef<Promise<ReadExperiment>>(undefined)
  const edit = useEdit(id)
  return {
    label: `name of ${name}`,
    value: name,
    maxLength: 120,
    onBegin: () => {
      read.current = readForEdit(id)
      read.current.catch(() => undefined) // saving reports it
    },
    onSave: (text: string) => edit('Rename', { name: text }, read.current ?? readForEdit(id), { name }),
  }
}

/** The items of a list separated by commas, trimmed and without empty ones. */
export function splitList(text: FormDataEntryValue | null): string[] {
  if (typeof text !== 'string') return []
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
}
