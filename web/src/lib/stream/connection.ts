import { backOff } from './back-off'

/** `polling`: the stream is unavailable, so a page should refetch at an interval. */
export type StreamStatus = 'connecting' | 'live' | 'reconnecting' | 'polling'

export interface ServerEvent {
  id: number
  /** The number of the previous event. A tab without that event has missed something. */
  after: number
  data: string
}

interface ConnectionOptions {
  url: string
  /** The last event that is known already; the stream starts behind it. */
  after: number
  types: readonly string[]
  onEvent: (event: ServerEvent) => void
  onStatus: (status: StreamStatus) => void
}

export interface Connection {
  /** The number of the last event that came. */
  at: () => number
  /** Reads again from after `after`, for a tab that has fewer events. */
  rewind: (after: number) => void
  close: () => void
}

/** Number of failed connects left to the browser, which retries every few seconds without limit. */
const PATIENCE = 3

/**
 * One stream of server-sent events. The browser reconnects by itself and sends Last-Event-ID; where it gives up (an
 * HTTP error, for example while the server restarts) or keeps failing, new streams resume there, at growing intervals.
 */
export function connect({ url, after, types, onEvent, onStatus }: ConnectionOptions): Connection {
  let source: EventSource
  let retry: ReturnType<typeof setTimeout> | undefined
  let lastId = after
  let failures = 0

  const receive = (event: MessageEvent<string>) => {
    const before = lastId
    lastId = Number(event.lastEventId)
    onEvent({ id: lastId, after: before, data: event.data })
  }
  const open = () => {
    clearTimeout(retry)
    retry = undefined
    source = new EventSource(`${url}?after=${lastId}`)
    source.onopen = () => {
      failures = -1 // a later break is not a failed connect
      onStatus('live')
    }
    source.onerror = fail
    for (const type of types) source.addEventListener(type, receive)
  }
  const fail = () => {
    failures += 1
    const lost = failures >= PATIENCE
    onStatus(lost ? 'polling' : 'reconnecting')
    if (!lost && source.readyState !== EventSource.CLOSED) return
    source.close()
    retry = setTimeout(open, backOff(failures - PATIENCE))
  }
  const wake = () => {
    if (retry !== undefined) open()
  }

  open()
  window.addEventListener('online', wake)
  return {
    at: () => lastId,
    rewind: (to) => {
      lastId = to
      if (retry !== undefined) return
      source.close()
      open()
    },
    close: () => {
      window.removeEventListener('online', wake)
      clearTimeout(retry)
      source.close()
    },
  }
}
