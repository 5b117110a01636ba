import { answer, client } from './client'
import type { Experiment, ExperimentChange } from './types'

function at(id: string) {
  return { path: { experiment_id: id } }
}

/** An experiment and the tag of what can be edited of it. */
export interface ReadExperiment {
  experiment: Experiment
  etag: string | null
}

export async function readForEdit(id: string): Promise<ReadExperiment> {
  const call = client.GET('/api/v1/experiments/{experiment_id}', { params: at(id) })
  const experiment = (await answer(call)) as Experiment
  return { experiment, etag: (await call).response.headers.get('ETag') }
}

/** Refused with `experiment.changed` if somebody edited it since it was read with `etag`. */
export function editExperiment(id: string, change: ExperimentChange, etag: string | null): Promise<Experiment> {
  const params = { ...at(id), ...(etag !== null && { header: { 'If-Match': etag } }) }
  const headers = { 'Content-Type': 'application/merge-patch+json' }
  return answer(client.PATCH('/api/v1/experiments/{experiment_id}', { params, body: change, headers }))
}

/** Reads it and gives it those tags in addition, without others. */
export async function retagExperiment(id: string, more: readonly string[], fewer: readonly string[]) {
  const { experiment, etag } = await readForEdit(id)
  const gone = fewer.map(tagKey)
  const tags = [...experiment.tags, ...more].filter((tag) => !gone.includes(tagKey(tag)))
  return editExperiment(id, { tags }, etag)
}

/** Upper and lower case are the same tag. */
export function tagKey(tag: string): string {
  return tag.trim().toLowerCase()
}
