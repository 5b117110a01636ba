export type StreamStatus = 'connecting' | 'live' | 'reconnecting'

interface StreamOptions {
  url: string
  types: readonly string[]
  onMessage: (data: string) => void
  onStatus: (status: StreamStatus) => void
}

const RETRY_MILLISECONDS = 5000

/**
 * Follows a stream of server-sent events until the returned function is called. The browser reconnects by itself and
 * sends Last-Event-ID; where it gives up (an HTTP error, say while the server restarts), a new stream resumes there.
 */
export function openEventStream({ url, types, onMessage, onStatus }: StreamOptions): () => void {
  let source: EventSource
  let retry: ReturnType<typeof setTimeout> | undefined
  let lastId = ''

  const receive = (event: MessageEvent<string>) => {
    lastId = event.lastEventId
    onMessage(event.data)
  }
  const connect = () => {
    source = new EventSource(lastId === '' ? url : `${url}?after=${encodeURIComponent(lastId)}`)
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
