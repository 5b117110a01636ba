import { queryOptions } from '@tanstack/react-query'

import { politeInterval } from '@/lib/back-off'

import { answer, client } from './client'
import { REFETCH_MILLISECONDS } from './queries'
import type { Alert, AlertEvent, AlertKind } from './types'

/** Asked again while somebody looks: what becomes of a message is no event. */
export function alertsQuery(project: string) {
  return queryOptions({
    queryKey: ['alerts', project],
    queryFn: ({ signal }) =>
      answer(client.GET('/api/v1/projects/{project}/alerts', { params: { path: { project } }, signal })),
    refetchInterval: ({ state }) => politeInterval(state, REFETCH_MILLISECONDS),
  })
}

export interface WantedAlert {
  kind: AlertKind
  address: string
  events: AlertEvent[]
}

/** The answer has the key of a webhook's signatures, this once. */
export function createAlert(project: string, wanted: WantedAlert) {
  return answer(client.POST('/api/v1/projects/{project}/alerts', { params: { path: { project } }, body: wanted }))
}

function of({ project, id }: Alert) {
  return { params: { path: { project, alert_id: id } } }
}

export function testAlert(alert: Alert) {
  return answer(client.POST('/api/v1/projects/{project}/alerts/{alert_id}:test', of(alert)))
}

export function deleteAlert(alert: Alert) {
  return answer(client.DELETE('/api/v1/projects/{project}/alerts/{alert_id}', of(alert)))
}
