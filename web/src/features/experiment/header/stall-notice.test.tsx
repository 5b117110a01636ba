// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import { afterEach, expect, test, vi } from 'vitest'

import type { Experiment, Role } from '@/api/types'

import { StallNotice } from './stall-notice'

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

async function show(role: Role, code: string) {
  // jsdom has the element but not its methods.
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true
  }
  HTMLDialogElement.prototype.close = vi.fn()
  vi.stubGlobal('fetch', ({ method }: Request) =>
    Promise.resolve(
      Response.json(method === 'GET' ? { name: 'ada', role } : { code: 'fe_1', command: 'ferret join http://ferret' }),
    ),
  )
  const stalled = { code, detail: '1 of 2 have joined', since: '2026-11-21T12:00:00Z' }
  const queryClient = new QueryClient()
  const notice = (reason: typeof stalled | null) => (
    <QueryClientProvider client={queryClient}>
      <StallNotice experiment={{ id: 'exp_1', state: 'running', stalled: reason } as unknown as Experiment} />
    </QueryClientProvider>
  )
  const { rerender } = render(notice(stalled))
  await vi.waitUntil(() => queryClient.isFetching() === 0)
  return () => {
    rerender(notice(null))
  }
}

test('a researcher invites the missing participants from the notice, and the code outlives it', async () => {
  const resolve = await show('researcher', 'participants.missing')
  fireEvent.click(await screen.findByRole('button', { name: 'Invite' }))
  fireEvent.submit(document.querySelector('dialog form') ?? document.body)
  expect((await screen.findByTestId('new-invitation')).textContent).toContain('ferret join')
  resolve()
  expect(screen.queryByTestId('stalled')).toBeNull()
  expect(screen.getByTestId('new-invitation').textContent).toContain('fe_1')
})

test.each<[Role, string]>([
  ['viewer', 'participants.missing'],
  ['researcher', 'broker.missing'],
])('a %s sees no button if the reason is %s', async (role, code) => {
  await show(role, code)
  expect(screen.getByTestId('stalled').textContent).toContain('1 of 2 have joined.')
  expect(screen.queryByRole('button')).toBeNull()
})
