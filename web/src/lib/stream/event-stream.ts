import { connect, type StreamStatus } from './connection'
import { canShare, share } from './tab-shared-stream'

export type { StreamStatus } from './connection'

interface StreamOptions {
  url: string
  /** The last event that is known already; the stream starts behind it. */
  after: number
  types: readonly string[]
  onMessage: (data: string) => void
  onStatus: (status: StreamStatus) => void
}

/**
 * Follows a stream of server-sent events until the returned function is called; each event comes once and in order.
 * All tabs that follow the same address have one connection together, where the browser lets them.
 */
export function openEventStream({ onMessage, ...options }: StreamOptions): () => void {
  let lastId = options.after
  const follower = {
    ...options,
    at: () => lastId,
    onEvent: ({ id, data }: { id: number; data: string }) => {
      if (id <= lastId) return
      lastId = id
      onMessage(data)
    },
  }
  options.onStatus('connecting')
  return canShare() ? share(follower) : connect(follower).close
}
