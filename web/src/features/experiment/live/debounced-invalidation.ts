import type { QueryClient } from '@tanstack/react-query'

import { type Part, partKey } from '@/api/queries'

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
