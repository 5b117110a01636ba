/** Of the six connections that browsers allow to a server, so many may be streams; the others are for requests. */
const SLOTS = 4

const SOON_MILLISECONDS = 1000

interface Wanted {
  signal: AbortSignal
  /** Called when all places are taken, once; one may come free later. */
  onFull: () => void
}

/** One of the browser's places for streams, with all its tabs, as soon as one is free; the answer gives it back. */
export function takeConnectionSlot({ signal, onFull }: Wanted): Promise<() => void> {
  const decided = new AbortController()
  const full = setTimeout(onFull, SOON_MILLISECONDS)
  signal.addEventListener('abort', () => {
    clearTimeout(full)
    decided.abort()
  })
  return new Promise((resolve) => {
    const take = () => {
      // Two places may come free at once: the second goes back.
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
