import { queryOptions } from '@tanstack/react-query'

import { politeInterval } from '@/lib/stream/back-off'

import { answer, client } from './client'
import { REFETCH_MILLISECONDS } from './queries'
import type { Alert, AlertEvent, AlertKind } from './types'

/** Refetched while the page is open, because no event reports the delivery of a message. */
export function alertsQuery(project: string) {
  return queryOptions({
    queryKey: ['alerts', project],
    queryFn: ({ signal }) =>
      answer(client.GET('/api/v1/projects/{project}/alerts', { params: { path: { project } }, signal })),
    refetchInterval: ({ state }) => politeInterval(state, REFETCH_MILLISECONDS),
  })
}

interface WantedAlert {
  kind: AlertKind
  address: string
  events: AlertEvent[]
  /** The only experiment that it is about. */
  experiment_id?: string
}

/** The answer holds the key of a webhook's signatures. It is the only one that does. */
export function createAlert(project: string, wanted: WantedAlert) {
  return answer(client.POST('/api/v1/projects/{project}/alerts', { params: { path: { project } }, body: wanted }))
}

function of({ project, id }: Alert) {
  return { params: { path: { project, alert_id: id } } }
}

export function testAlert(alert: Alert) {
  return answer(client.POST('/api/v1/projects/{project}/alerts/{alert_id}:test', of(alert)))
}

/** An alert that is off sends nothing, and messages that still wait are dropped. */
export function switchAlert(alert: Alert, enabled: boolean) {
  return answer(client.PATCH('/api/v1/projects/{project}/alerts/{alert_id}', { ...of(alert), body: { enabled } }))
}

export function deleteAlert(alert: Alert) {
  return answer(client.DELETE('/api/v1/projects/{project}/alerts/{alert_id}', of(alert)))
}
