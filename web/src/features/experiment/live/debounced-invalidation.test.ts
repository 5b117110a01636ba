// @vitest-environment jsdom
import { QueryClient, QueryObserver } from '@tanstack/react-query'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { partKey } from '@/api/queries'

import { debouncedInvalidation } from './debounced-invalidation'

const SLOW_MILLISECONDS = 1000
let begun: number
let cut: number
let queryClient: QueryClient

beforeEach(async () => {
  vi.useFakeTimers()
  begun = cut = 0
  queryClient = new QueryClient()
  const observer = new QueryObserver(queryClient, { queryKey: partKey('exp_1', 'rounds'), queryFn: fetchSlowly })
  observer.subscribe(() => undefined)
  await vi.advanceTimersByTimeAsync(SLOW_MILLISECONDS)
})

afterEach(() => {
  vi.useRealTimers()
})

function fetchSlowly({ signal }: { signal: AbortSignal }): Promise<number> {
  begun += 1
  signal.addEventListener('abort', () => (cut += 1))
  return new Promise((resolve) => setTimeout(resolve, SLOW_MILLISECONDS, begun))
}

function shown() {
  return queryClient.getQueryData(partKey('exp_1', 'rounds'))
}

test('where events never pause and the server is slow, each fetch comes to its end, and the last event is answered', async () => {
  const refresh = debouncedInvalidation(queryClient, 'exp_1')
  for (let passed = 0; passed < 3000; passed += 100) {
    refresh.mark(['rounds'])
    await vi.advanceTimersByTimeAsync(100)
  }
  expect(cut).toBe(0)
  expect(shown()).toBe(3)
  await vi.advanceTimersByTimeAsync(3 * SLOW_MILLISECONDS)
  expect(begun).toBe(shown())
  expect(begun).toBe(5)
})

test('a burst is one fetch', async () => {
  const refresh = debouncedInvalidation(queryClient, 'exp_1')
  for (let event = 0; event < 20; event += 1) refresh.mark(['rounds'])
  await vi.advanceTimersByTimeAsync(3 * SLOW_MILLISECONDS)
  expect(begun).toBe(2)
})

test('at the end nothing waits', () => {
  const refresh = debouncedInvalidation(queryClient, 'exp_1')
  refresh.mark(['rounds'])
  refresh.end()
  expect(begun).toBe(2)
})
