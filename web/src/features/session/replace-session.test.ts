import { expect, test, vi } from 'vitest'

import type { CurrentUser } from '@/api/types'

import { followLink } from './replace-session'

const ADA = { name: 'ada' } as CurrentUser

test.each([
  ['a browser without a session is signed in unasked', undefined, false, 1],
  ['a session stays if the user declines', ADA, false, 0],
  ['a session is replaced if the user agrees', ADA, true, 1],
])('%s', async (_, me, use, times) => {
  const signIn = vi.fn(() => Promise.resolve())
  const ask = vi.fn(() => Promise.resolve(use))
  await followLink({ signedIn: () => Promise.resolve(me), ask, signIn })
  expect(signIn).toHaveBeenCalledTimes(times)
  expect(ask).toHaveBeenCalledTimes(me === undefined ? 0 : 1)
})

test('a refused link shows the reason', async () => {
  const refused = followLink({
    signedIn: () => Promise.resolve(undefined),
    ask: () => Promise.resolve(true),
    signIn: () => Promise.reject(new Error('used')),
  })
  await expect(refused).rejects.toThrow('used')
})
