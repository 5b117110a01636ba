// @vitest-environment jsdom
import { QueryClient, QueryClientProvider, QueryObserver } from '@tanstack/react-query'
import { act, renderHook } from '@testing-library/react'
import type { ReactNode } from 'react'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

import { experimentQuery, partKey } from '@/api/queries'
import type { Experiment, ExperimentState } from '@/api/types'
import { formatClock } from '@/lib/format'
import { FakeEventSource } from '@/lib/testing/fake-event-source'

import { debouncedInvalidation, useLive } from './use-live'

describe('useLive', () => {
  const STREAM = '/api/v1/experiments/exp_1/events/stream'
  let queryClient: QueryClient

  beforeEach(() => {
    vi.useFakeTimers()
    FakeEventSource.install()
    queryClient = new QueryClient()
  })

  afterEach(() => {
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })

  function experiment(state: ExperimentState, round = 0) {
    return { id: 'exp_1', state, round, last_event_seq: 7, links: { stream: STREAM } } as Experiment
  }

  function cached() {
    const shown = queryClient.getQueryData(experimentQuery('exp_1').queryKey)
    if (shown === undefined) throw new Error('nothing is cached')
    return shown
  }

  function follow(first: Experiment) {
    queryClient.setQueryData(experimentQuery('exp_1').queryKey, first)
    const wrapper = ({ children }: { children: ReactNode }) => (
      <QueryClientProvider client={queryClient}>{children}</QueryClientProvider>
    )
    return renderHook((shown: Experiment) => useLive(shown), { initialProps: first, wrapper })
  }

  function pass(milliseconds: number) {
    act(() => {
      vi.advanceTimersByTime(milliseconds)
    })
  }

  function invalidated(spy: { mock: { calls: unknown[][] } }): unknown[] {
    return spy.mock.calls.map(([filters]) => (filters as { queryKey: unknown[] }).queryKey.join('/'))
  }

  test('an event patches the experiment at once and refreshes what it made stale, once per burst', () => {
    const refresh = vi.spyOn(queryClient, 'invalidateQueries')
    const { result } = follow(experiment('running', 1))
    act(() => {
      FakeEventSource.latest.open()
      FakeEventSource.latest.send({ seq: 8, type: 'round.committed', round: 2 })
      FakeEventSource.latest.send({ seq: 9, type: 'round.evaluated', round: 2 })
    })
    expect(FakeEventSource.latest.url).toBe(`${STREAM}?after=7`)
    expect(result.current).toBe('live')
    expect(cached().round).toBe(2)
    expect(refresh).not.toHaveBeenCalled()

    pass(200)
    expect(invalidated(refresh)).toEqual([
      'experiment/exp_1/show',
      'experiment/exp_1/rounds',
      'experiment/exp_1/participation',
      'experiment/exp_1/metrics',
    ])
  })

  test('the last event closes the stream and refreshes the rest', () => {
    const refresh = vi.spyOn(queryClient, 'invalidateQueries')
    const { result, rerender } = follow(experiment('running', 12))
    act(() => {
      FakeEventSource.latest.send({ seq: 99, type: 'experiment.completed' })
    })
    rerender(cached())
    expect(result.current).toBe('finished')
    expect(FakeEventSource.latest.readyState).toBe(FakeEventSource.CLOSED)
    expect(invalidated(refresh)).toContain('experiment/exp_1/artifacts')
  })

  test('an experiment that was given more rounds is followed again', () => {
    const { result, rerender } = follow(experiment('completed', 12))
    expect(FakeEventSource.opened).toHaveLength(0)
    rerender(experiment('running', 12))
    expect(FakeEventSource.opened).toHaveLength(1)
    expect(result.current).toBe('connecting')
  })

  test('a finished experiment opens no stream', () => {
    expect(follow(experiment('failed')).result.current).toBe('finished')
    expect(FakeEventSource.opened).toHaveLength(0)
  })

  test('while the stream is down, what polling finds refreshes the rest, and its return refreshes all', () => {
    const { result, rerender } = follow(experiment('running'))
    const refresh = vi.spyOn(queryClient, 'invalidateQueries')
    act(() => {
      FakeEventSource.latest.fail(FakeEventSource.CONNECTING)
    })
    expect(result.current).toBe('reconnecting')
    pass(60_000)
    expect(refresh).not.toHaveBeenCalled()
    rerender({ ...experiment('running'), last_event_seq: 8 })
    expect(invalidated(refresh)).toEqual(['experiment/exp_1'])

    act(() => {
      FakeEventSource.latest.open()
    })
    expect(result.current).toBe('live')
    expect(refresh).toHaveBeenCalledTimes(2)
    rerender({ ...experiment('running'), last_event_seq: 9 })
    expect(refresh).toHaveBeenCalledTimes(2)
  })

  test('a stream that stays silent does not keep the page stale', () => {
    const { result, rerender } = follow(experiment('running'))
    act(() => {
      FakeEventSource.latest.open()
    })
    const refresh = vi.spyOn(queryClient, 'invalidateQueries')
    rerender({ ...experiment('running'), last_event_seq: 8 })
    expect(refresh).not.toHaveBeenCalled()
    pass(3000)
    expect(result.current).toBe('live')
    expect(invalidated(refresh)).toEqual(['experiment/exp_1'])
  })

  test('shows since when it is stale if polling fails too', async () => {
    const { result } = follow(experiment('running'))
    const failing = { queryKey: experimentQuery('exp_1').queryKey, queryFn: () => Promise.reject(new Error('away')) }
    await act(() => queryClient.query({ ...failing, retry: false }).catch(() => undefined))
    pass(1)
    expect(result.current).toBe(`stale since ${formatClock(Date.now())}`)
    act(() => {
      FakeEventSource.latest.open()
    })
    expect(result.current).toBe('live')
  })
})

describe('debouncedInvalidation', () => {
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
})
