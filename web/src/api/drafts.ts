import { queryOptions } from '@tanstack/react-query'

import { answer, client } from './client'
import type { Draft, Experiment } from './types'

type Table = Record<string, unknown>

function query(project: string | undefined) {
  return { ...(project !== undefined && { project }) }
}

/** The plan for a draft. A newer draft cancels the request for an older one. */
export function planQuery(draft: Draft, project: string | undefined) {
  return queryOptions({
    queryKey: ['plan', draft, project],
    queryFn: ({ signal }) =>
      answer(client.POST('/api/v1/experiments:plan', { params: { query: query(project) }, body: draft, signal })),
    staleTime: 60_000,
    gcTime: 60_000,
  })
}

export const presetsQuery = queryOptions({
  queryKey: ['presets'],
  queryFn: ({ signal }) => answer(client.GET('/api/v1/presets', { signal })),
  staleTime: Infinity,
})

interface Beginning {
  spec?: Table
  toml?: string
  original?: string
  preset?: string
  /** A JSON Merge Patch (RFC 7396). */
  change?: Table
}

/** A specification after a change, by the rules of cloning. */
export function reviseDraft({ change = {}, ...beginning }: Beginning) {
  return answer(client.POST('/api/v1/experiments:revise', { body: { change, ...beginning } }))
}

export function originalQuery(id: string) {
  return queryOptions({
    queryKey: ['draft', id],
    queryFn: () => reviseDraft({ original: id }),
    staleTime: Infinity,
  })
}

const BYTES = 16

/** 128 random bits in hex. `randomUUID` is missing where a page came by plain http from another machine. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** A repeated request with the same key creates no second experiment. */
export function submitExperiment(spec: Table, key: string, project: string | undefined) {
  return answer(
    client.POST('/api/v1/experiments', {
      params: { query: query(project), header: { 'Idempotency-Key': key } },
      body: spec as Experiment['spec'],
    }),
  )
}

/** `change` is a JSON Merge Patch of the original's specification. */
export function cloneExperiment(id: string, change: Table, key: string, project: string | undefined) {
  return answer(
    client.POST('/api/v1/experiments/{experiment_id}:clone', {
      params: { path: { experiment_id: id }, query: query(project), header: { 'Idempotency-Key': key } },
      body: change,
    }),
  )
}
