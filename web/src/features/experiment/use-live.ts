import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'

import { applyEvent, EVENT_TYPES, parseEvent, staleParts } from '@/api/events'
import { experimentKey, experimentQuery, type Part, partKey } from '@/api/queries'
import { type Experiment, isFinished } from '@/api/types'
import { openEventStream, type StreamStatus } from '@/lib/event-stream'

export type LiveStatus = StreamStatus | 'finished'

/** Events come in bursts (a round commits, writes its checkpoint, opens the next): one refetch answers a burst. */
const BURST_MILLISECONDS = 200

const POLL_MILLISECONDS = 5000

/** Keeps an experiment's caches true by its event stream, until its last event or the end of the page. */
export function useLive(experiment: Experiment): LiveStatus {
  const { id } = experiment
  const url = experiment.links.stream
  const finished = isFinished(experiment.state)
  const queryClient = useQueryClient()
  const [status, setStatus] = useState<StreamStatus>('connecting')

  useEffect(() => {
    if (finished) return
    const refresh = burstRefresher(queryClient, id)
    const close = openEventStream({
      url,
      after: queryClient.getQueryData(experimentQuery(id).queryKey)?.event_seq ?? 0,
      types: EVENT_TYPES,
      onMessage: (data) => {
        const event = parseEvent(data)
        queryClient.setQueryData(experimentQuery(id).queryKey, (known) => known && applyEvent(known, event))
        refresh.mark(staleParts(event))
      },
      onStatus: setStatus,
    })
    return () => {
      close()
      refresh.now()
    }
  }, [queryClient, id, url, finished])

  useEffect(() => {
    if (finished || status !== 'reconnecting') return
    const timer = setInterval(
      () => void queryClient.invalidateQueries({ queryKey: experimentKey(id) }),
      POLL_MILLISECONDS,
    )
    return () => {
      clearInterval(timer)
    }
  }, [queryClient, id, finished, status])

  return finished ? 'finished' : status
}

function burstRefresher(queryClient: QueryClient, id: string) {
  const stale = new Set<Part>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const now = () => {
    clearTimeout(timer)
    timer = undefined
    for (const part of stale) void queryClient.invalidateQueries({ queryKey: partKey(id, part) })
    stale.clear()
  }
  const mark = (parts: readonly Part[]) => {
    for (const part of parts) stale.add(part)
    timer ??= setTimeout(now, BURST_MILLISECONDS)
  }
  return { mark, now }
}
