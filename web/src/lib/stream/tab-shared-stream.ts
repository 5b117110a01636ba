import { connect, type Connection, type ServerEvent, type StreamStatus } from './connection'

interface Follower {
  url: string
  types: readonly string[]
  /** The number of the last event that this tab has. */
  at: () => number
  onEvent: (event: ServerEvent) => void
  onStatus: (status: StreamStatus) => void
}

/** Messages between tabs that follow the same address. */
type Message =
  | ({ kind: 'event' } & ServerEvent)
  /** The state of the leader's connection, and the last event that it has read; 0 before the first. */
  | { kind: 'status'; status: StreamStatus; at: number }
  /** A tab requests the state, or lacks the events after this one. */
  | { kind: 'hello'; after: number }

/** Silence after which a leader counts as asleep: phones stop pages in the background, and the pages keep their locks. */
const SILENCE_MILLISECONDS = 5000

/** Leading is a lock that one tab of the browser has; browsers give both to secure origins alone. */
export function canShare(): boolean {
  return typeof BroadcastChannel === 'function' && 'locks' in navigator
}

/**
 * Follows an address together with the browser's other tabs: browsers allow six connections to a server, which six
 * tabs would use up. The tab that holds the address's lock reads the stream and passes it on. When it goes, the browser
 * hands the lock to the next, which resumes after the last event that it has. A tab that lacks more requests it.
 */
export function share(follower: Follower): () => void {
  const lock = `ferret.stream ${follower.url}`
  const channel = new BroadcastChannel(lock)
  const say = (message: Message) => {
    channel.postMessage(message)
  }
  let closed = false
  let queue = new AbortController()
  let leading: Leadership | undefined
  let silence: ReturnType<typeof setTimeout> | undefined

  const stand = (options: LockOptions) => {
    let mine: Leadership | undefined
    const held = navigator.locks.request(lock, options, async () => {
      clearTimeout(silence)
      if (closed) return
      leading = mine = lead(follower, say)
      await mine.ended
    })
    held.catch(() => {
      if (mine === undefined) return // it has left the queue
      // Another tab took the lock from this one, which follows from now on.
      mine.stop()
      leading = undefined
      if (!closed) wait()
    })
  }
  const wait = () => {
    queue = new AbortController()
    stand({ signal: queue.signal })
  }
  const ask = () => {
    if (leading !== undefined) return
    say({ kind: 'hello', after: follower.at() })
    clearTimeout(silence)
    if (document.hidden) return
    silence = setTimeout(() => {
      queue.abort()
      stand({ steal: true })
    }, SILENCE_MILLISECONDS)
  }
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.kind === 'hello') {
      leading?.answer(data.after)
      return
    }
    clearTimeout(silence)
    const needed = data.kind === 'event' ? data.after : data.at
    if (leading === undefined && needed > follower.at()) say({ kind: 'hello', after: follower.at() })
    else if (data.kind === 'event') follower.onEvent(data)
    if (leading === undefined && data.kind === 'status') follower.onStatus(data.status)
  }

  wait()
  ask()
  document.addEventListener('visibilitychange', ask)
  return () => {
    closed = true
    document.removeEventListener('visibilitychange', ask)
    clearTimeout(silence)
    queue.abort()
    leading?.stop()
    channel.close()
  }
}

interface Leadership {
  /** Answers a tab that requests the state or lacks the events after this one. */
  answer: (after: number) => void
  stop: () => void
  ended: Promise<void>
}

/** Reads the stream for all, as soon as the browser has a connection to spare. */
function lead(follower: Follower, say: (message: Message) => void): Leadership {
  const stopped = new AbortController()
  let connection: Connection | undefined
  let status: StreamStatus = 'connecting'
  const report = () => {
    say({ kind: 'status', status, at: connection?.at() ?? 0 })
  }
  const tell = (now: StreamStatus) => {
    status = now
    follower.onStatus(now)
    report()
  }

  const full = () => {
    tell('polling')
  }
  void takeConnectionSlot({ signal: stopped.signal, onFull: full }).then((leave) => {
    stopped.signal.addEventListener('abort', leave)
    if (stopped.signal.aborted) {
      leave()
      return
    }
    connection = connect({
      ...follower,
      after: follower.at(),
      onStatus: tell,
      onEvent: (event) => {
        follower.onEvent(event)
        say({ kind: 'event', ...event })
      },
    })
    report()
  })
  return {
    ended: new Promise((resolve) => {
      stopped.signal.addEventListener('abort', () => {
        resolve()
      })
    }),
    answer: (after) => {
      if (connection !== undefined && after < connection.at()) connection.rewind(after)
      report()
    },
    stop: () => {
      connection?.close()
      stopped.abort()
    },
  }
}

/** Streams may use this many of the six connections that browsers allow to a server. The others are for requests. */
const SLOTS = 4

const SOON_MILLISECONDS = 1000

interface Wanted {
  signal: AbortSignal
  /** Called once when all slots are taken; one may become free later. */
  onFull: () => void
}

/** Takes one of the slots for streams, which all tabs share, as soon as one is free. The result releases it. */
function takeConnectionSlot({ signal, onFull }: Wanted): Promise<() => void> {
  const decided = new AbortController()
  const full = setTimeout(onFull, SOON_MILLISECONDS)
  signal.addEventListener('abort', () => {
    clearTimeout(full)
    decided.abort()
  })
  return new Promise((resolve) => {
    const take = () => {
      // Two slots may become free at once: the second one is released.
      if (decided.signal.aborted) return Promise.resolve()
      clearTimeout(full)
      decided.abort()
      return new Promise<void>((leave) => {
        resolve(leave)
      })
    }
    for (let slot = 0; slot < SLOTS; slot += 1) {
      navigator.locks.request(`ferret.connection-slot ${slot}`, { signal: decided.signal }, take).catch(() => undefined)
    }
  })
}
