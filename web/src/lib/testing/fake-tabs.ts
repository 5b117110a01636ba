import { vi } from 'vitest'

interface Waiting {
  signal: AbortSignal | undefined
  run: () => Promise<unknown>
  settle: (outcome: Promise<unknown>) => void
}

interface Lock {
  holder: Waiting | undefined
  queue: Waiting[]
}

const refusal = () => Promise.reject(new DOMException('taken or left', 'AbortError'))

/** Stands in for the browser's Web Locks: one holder per name, the others in a queue; a lock can be stolen. */
class FakeLocks {
  private readonly locks = new Map<string, Lock>()

  request(name: string, options: LockOptions, run: () => Promise<unknown>): Promise<unknown> {
    const lock = this.locks.get(name) ?? { holder: undefined, queue: [] }
    this.locks.set(name, lock)
    return new Promise((resolve) => {
      const waiting: Waiting = { signal: options.signal, run, settle: resolve }
      options.signal?.addEventListener('abort', () => {
        if (!lock.queue.includes(waiting)) return
        lock.queue.splice(lock.queue.indexOf(waiting), 1)
        resolve(refusal())
      })
      if (options.steal) {
        lock.queue.unshift(waiting)
        this.lose(name)
      } else {
        lock.queue.push(waiting)
        this.grant(lock)
      }
    })
  }

  /** As when the holder's tab crashes: none of its code runs. */
  lose(name: string): void {
    const lock = this.locks.get(name)
    if (lock === undefined) return
    lock.holder?.settle(refusal())
    lock.holder = undefined
    this.grant(lock)
  }

  private grant(lock: Lock): void {
    const next = lock.holder === undefined ? lock.queue.shift() : undefined
    if (next === undefined) return
    lock.holder = next
    void Promise.resolve()
      .then(next.run)
      .then(() => {
        if (lock.holder !== next) return
        lock.holder = undefined
        next.settle(Promise.resolve())
        this.grant(lock)
      })
  }
}

/** Replaces the browser's BroadcastChannel, synchronously and within one page; its callers play the tabs. */
class FakeChannel {
  static all: FakeChannel[] = []
  onmessage: ((event: { data: unknown }) => void) | null = null

  constructor(readonly name: string) {
    FakeChannel.all.push(this)
  }

  postMessage(data: unknown): void {
    const others = FakeChannel.all.filter((channel) => channel !== this && channel.name === this.name)
    for (const channel of others) channel.onmessage?.({ data })
  }

  close(): void {
    FakeChannel.all = FakeChannel.all.filter((channel) => channel !== this)
  }
}

/** Gives the page what tabs share; the locks that it answers with can be lost. */
export function installTabs(): FakeLocks {
  const locks = new FakeLocks()
  FakeChannel.all = []
  vi.stubGlobal('BroadcastChannel', FakeChannel)
  Object.defineProperty(navigator, 'locks', { value: locks, configurable: true })
  return locks
}

export function uninstallTabs(): void {
  Reflect.deleteProperty(navigator, 'locks')
}

/** Makes the tabs that listen now deaf, until the returned function is called. */
export function sleep(): () => void {
  const asleep = FakeChannel.all
  FakeChannel.all = []
  return () => {
    FakeChannel.all.push(...asleep)
  }
}
