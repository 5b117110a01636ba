import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { ApiProblem } from '@/api/problem'

import { dashboardQueries } from './query-client'

vi.mock('@/api/queries', () => ({ infoQuery: { queryKey: ['info'] } }))

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

/** The number of requests that a query sends until it gives up or gets an answer. */
async function asked(queryClient: ReturnType<typeof dashboardQueries>, status: number): Promise<number> {
  const queryFn = vi.fn(() => (status === 200 ? Promise.resolve('') : Promise.reject(new ApiProblem({}, status))))
  const result = queryClient.query({ queryKey: [Math.random()], queryFn }).catch(() => undefined)
  await vi.runAllTimersAsync()
  await result
  return queryFn.mock.calls.length
}

test('silence and overload are worth another try, a refusal is not', async () => {
  const tries = [0, 503, 404].map((status) => asked(dashboardQueries(), status))
  expect(await Promise.all(tries)).toEqual([3, 3, 1])
})

test('an unreachable server gets one request at a time, until it answers', async () => {
  const queryClient = dashboardQueries()
  const tries = []
  for (const status of [0, 0, 0, 200, 0]) tries.push(await asked(queryClient, status))
  expect(tries).toEqual([3, 1, 1, 1, 3])
})

test('a 401 response shows the sign-in form', async () => {
  const queryClient = dashboardQueries()
  const invalidate = vi.spyOn(queryClient, 'invalidateQueries')
  await asked(queryClient, 401)
  expect(invalidate).toHaveBeenCalledWith({ queryKey: ['info'] })
})
