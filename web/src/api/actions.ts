import { answer, client } from './client'
import type { Experiment, Participant } from './types'

interface Identified {
  id: string
}

function at(id: string) {
  return { params: { path: { experiment_id: id } } }
}

export function pauseExperiment({ id }: Identified) {
  return answer(client.POST('/api/v1/experiments/{experiment_id}:pause', at(id)))
}

export function resumeExperiment({ id }: Identified) {
  return answer(client.POST('/api/v1/experiments/{experiment_id}:resume', at(id)))
}

export function cancelExperiment({ id }: Identified) {
  return answer(client.POST('/api/v1/experiments/{experiment_id}:cancel', at(id)))
}

/** With the number of rounds before, a request that is sent twice adds rounds only once. */
export function extendExperiment({ id, round, rounds: all, stopped }: Experiment, rounds: number) {
  const body = { rounds, expected_rounds: stopped ? round : all }
  return answer(client.POST('/api/v1/experiments/{experiment_id}:extend', { ...at(id), body }))
}

export function archiveExperiment({ id }: Identified) {
  return answer(client.POST('/api/v1/experiments/{experiment_id}:archive', at(id)))
}

export function unarchiveExperiment({ id }: Identified) {
  return answer(client.POST('/api/v1/experiments/{experiment_id}:unarchive', at(id)))
}

export function deleteExperiment({ id }: Identified) {
  return answer(client.DELETE('/api/v1/experiments/{experiment_id}', at(id)))
}

function of(id: string, name: string) {
  return { params: { path: { experiment_id: id, name } } }
}

export function approveParticipant(id: string, { name }: Participant) {
  return answer(client.POST('/api/v1/experiments/{experiment_id}/participants/{name}:approve', of(id, name)))
}

export function refuseParticipant(id: string, { name }: Participant, reason: string | null) {
  return answer(
    client.POST('/api/v1/experiments/{experiment_id}/participants/{name}:refuse', {
      ...of(id, name),
      body: { reason },
    }),
  )
}

/** The participant takes part no more and receives the reason. Its accepted contributions stay. */
export function revokeParticipant(id: string, { name }: Participant, reason: string | null) {
  return answer(
    client.POST('/api/v1/experiments/{experiment_id}/participants/{name}:revoke', {
      ...of(id, name),
      body: { reason },
    }),
  )
}
