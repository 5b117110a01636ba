/** Streams may use this many of the six connections that browsers allow to a server. The others are for requests. */
const SLOTS = 4

const SOON_MILLISECONDS = 1000

interface Wanted {
  signal: AbortSignal
  /** Called once when all slots are taken; one may become free later. */
  onFull: () => void
}

/** Takes one of the slots for streams, which all tabs share, as soon as one is free. The result releases it. */
export function takeConnectionSlot({ signal, onFull }: Wanted): Promise<() => void> {
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
