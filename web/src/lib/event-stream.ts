export type StreamStatus = 'connecting' | 'live' | 'reconnecting'

interface StreamOptions {
  url: string
  /** The last event that is known already; the stream starts behind it. */
  after: number
  types: readonly string[]
  onMessage: (data: string) => void
  onStatus: (status: StreamStatus) => void
}

const RETRY_MILLISECONDS = 5000

/**
 * Follows a stream of server-sent events until the returned function is called. The browser reconnects by itself and
 * sends Last-Event-ID; where it gives up (an HTTP error, say while the server restarts), a new stream resumes there.
 */
export function openEventStream({ url, after, types, onMessage, onStatus }: StreamOptions): () => void {
  let source: EventSource
  let retry: ReturnType<typeof setTimeout> | undefined
  let lastId = String(after)

  const receive = (event: MessageEvent<string>) => {
    lastId = event.lastEventId
    onMessage(event.data)
  }
  const connect = () => {
    source = new EventSource(`${url}?after=${encodeURIComponent(lastId)}`)
    source.onopen = () => {
      onStatus('live')
    }
    source.onerror = () => {
      onStatus('reconnecting')
      if (source.readyState === EventSource.CLOSED) retry = setTimeout(connect, RETRY_MILLISECONDS)
    }
    for (const type of types) source.addEventListener(type, receive)
  }

  onStatus('connecting')
  connect()
  return () => {
    clearTimeout(retry)
    source.close()
  }
}
