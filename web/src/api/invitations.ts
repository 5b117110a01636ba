import { infiniteQueryOptions } from '@tanstack/react-query'

import { politeInterval } from '@/lib/stream/back-off'

import { answer, byCursor, client, page } from './client'
import { experimentKey, REFETCH_MILLISECONDS } from './queries'

export function invitationsKey(id: string) {
  return [...experimentKey(id), 'enrolments']
}

/** The experiment's codes, the newest first. They are refetched, because no event reports that a code was used. */
export function invitationsQuery(id: string, live: boolean) {
  return infiniteQueryOptions({
    queryKey: invitationsKey(id),
    queryFn: ({ pageParam, signal }) => {
      const params = { path: { experiment_id: id }, query: page(pageParam) }
      return answer(client.GET('/api/v1/experiments/{experiment_id}/enrolments', { params, signal }))
    },
    refetchInterval: ({ state }) => live && politeInterval(state, REFETCH_MILLISECONDS),
    ...byCursor,
  })
}

interface WantedInvitation {
  expires_seconds: number
  group: string | null
  approval: boolean
}

/** The answer holds the code. It is the only one that does. */
export function invite(id: string, wanted: WantedInvitation) {
  const params = { path: { experiment_id: id } }
  return answer(client.POST('/api/v1/experiments/{experiment_id}/enrolments', { params, body: wanted }))
}

export function revokeInvitation(id: string, enrolment: string) {
  const params = { path: { experiment_id: id, enrolment_id: enrolment } }
  return answer(client.POST('/api/v1/experiments/{experiment_id}/enrolments/{enrolment_id}:revoke', { params }))
}
