import { eventReader } from '@/lib/stream/server-events'

import { answer, client } from './client'
import { problemOf, toProblem } from './problem'
import type { PlaygroundEvent, PlaygroundRequest } from './types'

export type SaidKind = 'waiting' | 'loading' | 'text' | 'done' | 'end' | 'problem'

function at(id: string) {
  return { params: { path: { experiment_id: id } } }
}

/**
 * Sends a question to a model and passes on every message until the end. Aborting `signal` closes the connection, which
 * stops the worker. Rejects with an ApiProblem if the question is refused or the answer is interrupted.
 */
export async function askModel(
  id: string,
  ask: PlaygroundRequest,
  onSaid: (kind: SaidKind, said: PlaygroundEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  const { data, error, response } = await client
    .POST('/api/v1/experiments/{experiment_id}/playground', { ...at(id), body: ask, parseAs: 'stream', signal })
    .catch((reason: unknown) => {
      throw toProblem(reason)
    })
  if (!response.ok) throw problemOf(error, response.status)
  const last = { event: '' }
  const take = eventReader(({ event, data }) => {
    const said = JSON.parse(data) as PlaygroundEvent
    if (event === 'problem') throw problemOf(said, said.status ?? 0)
    last.event = event
    onSaid(event as SaidKind, said)
  })
  await read(data as unknown as ReadableStream<Uint8Array<ArrayBuffer>>, take)
  if (last.event !== 'end') throw toProblem(new TypeError('The stream ended before the answer'))
}

async function read(body: ReadableStream<Uint8Array<ArrayBuffer>>, take: (text: string) => void): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { value, done } = await reader.read().catch((reason: unknown) => {
      throw toProblem(reason)
    })
    if (done) return
    take(value)
  }
}

/** One of the held-out examples on the service, chosen by `seed`. */
export function drawExample(id: string, seed: number) {
  return answer(client.POST('/api/v1/experiments/{experiment_id}/playground/example', { ...at(id), body: { seed } }))
}
