import { type QueryClient, type QueryKey, useQuery, useQueryClient } from '@tanstack/react-query'
import { type RefObject, useEffect, useRef, useState } from 'react'

import { applyEvent, EVENT_TYPES, parseEvent, staleParts } from '@/api/events'
import { experimentKey, experimentQuery, type Part, partKey } from '@/api/queries'
import { type Experiment, isFinished } from '@/api/types'
import { formatClock } from '@/lib/format'
import { openEventStream, type StreamStatus } from '@/lib/stream/event-stream'

export type LiveStatus = StreamStatus | 'finished' | `stale since ${string}`

/** Keeps an experiment's caches current by its event stream, until its last event or the end of the page. */
export function useLive(experiment: Experiment): LiveStatus {
  const { id } = experiment
  const url = experiment.links.stream
  const finished = isFinished(experiment.state)
  const queryClient = useQueryClient()
  const [status, setStatus] = useState<StreamStatus>('connecting')
  const staleSince = useStaleSince(id)
  /** The last event that the stream has brought. */
  const streamed = useRef(0)

  useEffect(() => {
    if (finished) return
    const refresh = debouncedInvalidation(queryClient, id)
    let lost = false
    const close = openEventStream({
      url,
      after: queryClient.getQueryData(experimentQuery(id).queryKey)?.last_event_seq ?? 0,
      types: EVENT_TYPES,
      onMessage: (data) => {
        const event = parseEvent(data)
        streamed.current = Math.max(streamed.current, event.seq)
        queryClient.setQueryData(experimentQuery(id).queryKey, (known) => known && applyEvent(known, event))
        refresh.mark(staleParts(event))
      },
      onStatus: (now) => {
        setStatus(now)
        // Queries that failed meanwhile wait for their next try. The server is back, so they are refetched now.
        if (lost && now === 'live') void queryClient.invalidateQueries({ queryKey: experimentKey(id) })
        if (now !== 'connecting') lost = now !== 'live'
      },
    })
    return () => {
      close()
      refresh.end()
    }
  }, [queryClient, id, url, finished])

  useRefreshWithoutStream(experiment, status === 'live', streamed)

  if (finished) return 'finished'
  return status !== 'live' && staleSince !== undefined ? `stale since ${formatClock(staleSince)}` : status
}

/** The time of the experiment's last good answer, once a later one failed. */
function useStaleSince(id: string): number | undefined {
  const { isError, dataUpdatedAt } = useQuery({ ...experimentQuery(id), enabled: false })
  return isError ? dataUpdatedAt : undefined
}

/** A stream brings an event in less time after the server has it. */
const STREAM_MILLISECONDS = 2500

/**
 * The experiment itself is refetched at an interval. Without a stream, or with one that stays silent, a new last event
 * shows that other parts changed.
 */
function useRefreshWithoutStream(
  { id, last_event_seq: seq }: Experiment,
  live: boolean,
  streamed: RefObject<number>,
): void {
  const queryClient = useQueryClient()
  /** The last event with fetched effects. */
  const fetched = useRef(seq)
  useEffect(() => {
    const refresh = () => {
      if (seq <= Math.max(fetched.current, streamed.current)) return
      fetched.current = seq
      const others = ({ queryKey }: { queryKey: QueryKey }) => queryKey.at(-1) !== 'show'
      void queryClient.invalidateQueries({ queryKey: experimentKey(id), predicate: others })
    }
    if (!live) {
      refresh()
      return
    }
    const timer = setTimeout(refresh, STREAM_MILLISECONDS)
    return () => {
      clearTimeout(timer)
    }
  }, [queryClient, id, seq, live, streamed])
}

/** Events come in bursts (a round commits, writes its checkpoint, opens the next): one refetch answers a burst. */
const BURST_MILLISECONDS = 200

/** Refetches the parts that events made stale. A running fetch is not cancelled: later changes are fetched after it. */
export function debouncedInvalidation(queryClient: QueryClient, id: string) {
  const stale = new Set<Part>()
  const busy = new Set<Part>()
  let timer: ReturnType<typeof setTimeout> | undefined

  const refresh = async (part: Part) => {
    stale.delete(part)
    busy.add(part)
    await queryClient.invalidateQueries({ queryKey: partKey(id, part) })
    busy.delete(part)
    if (stale.has(part)) wait()
  }
  const wait = () => {
    timer ??= setTimeout(() => {
      timer = undefined
      for (const part of [...stale]) if (!busy.has(part)) void refresh(part)
    }, BURST_MILLISECONDS)
  }
  return {
    mark: (parts: readonly Part[]) => {
      for (const part of parts) stale.add(part)
      wait()
    },
    /** Ends the debouncing and refetches at once. */
    end: () => {
      clearTimeout(timer)
      for (const part of [...stale]) void refresh(part)
    },
  }
}
