// @vitest-environment jsdom
import { QueryClient, QueryClientProvider, useQuery } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen, within } from '@testing-library/react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { participantsQuery } from '@/api/queries'
import type { Experiment, Participant, Role } from '@/api/types'

import { ParticipantsSection } from './participants-section'
import { matrixOf } from './participation-matrix'

// jsdom lays nothing out, so that no row would be in sight.
vi.mock('@tanstack/react-virtual', () => ({
  useVirtualizer: ({ count }: { count: number }) => ({
    getVirtualItems: () => Array.from({ length: count }, (_, index) => ({ index, start: 0, end: 0 })),
    getTotalSize: () => 0,
    measureElement: undefined,
  }),
}))

const AT = '2026-11-21T12:30:00Z'
const CLINIC: Participant = {
  id: 'par_1',
  name: 'clinic-7',
  display_name: 'clinic-7',
  group: null,
  public_key: null,
  created_at: AT,
  seen_at: AT,
  state: 'active',
  revoked_at: null,
  revocation_reason: null,
}

let participants: Participant[]
let role: Role
let asked: { path: string; body: unknown }[]

beforeEach(() => {
  role = 'researcher'
  asked = []
  // jsdom has the element but not its methods.
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true
  }
  HTMLDialogElement.prototype.close = function () {
    this.open = false
    this.dispatchEvent(new Event('close'))
  }
  vi.stubGlobal('fetch', async (request: Request) => {
    const path = new URL(request.url).pathname.replace('/api/v1', '')
    if (path === '/me') return Response.json({ name: 'ada', role })
    if (request.method === 'GET') return Response.json({ items: participants, next_cursor: null })
    asked.push({ path, body: await request.json().catch(() => undefined) })
    const state = path.endsWith(':approve') ? 'active' : 'refused'
    participants = participants.map((participant) => ({ ...participant, state }))
    return Response.json(participants[0])
  })
})

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

const EXPERIMENT = { id: 'exp_1', participants: 3, spec: { participants: { simulated: 0 } } } as unknown as Experiment
const NO_ROUND = matrixOf({ rounds: [], displayNames: {} })
const nothing = vi.fn()

function Listed() {
  const { data = [] } = useQuery(participantsQuery('exp_1', false))
  return (
    <ParticipantsSection
      loaded
      {...{ experiment: EXPERIMENT, matrix: NO_ROUND, participants: data, view: {}, onView: nothing, onOpen: nothing }}
    />
  )
}

let queryClient: QueryClient

async function visit(found: Participant[]) {
  participants = found
  queryClient = new QueryClient()
  render(
    <QueryClientProvider client={queryClient}>
      <Listed />
    </QueryClientProvider>,
  )
  await screen.findByRole('table')
  return within(screen.getByTestId('participants'))
}

test('a participant is shown by its name in any script, apart from the text around it', async () => {
  const long = 'é'.repeat(200)
  const section = await visit([
    { ...CLINIC, name: 'site-5d556e03', display_name: 'مستشفى الأمل' },
    {
      ...CLINIC,
      id: 'par_2',
      name: 'long',
      display_name: long,
      state: 'revoked',
      revoked_at: AT,
      revocation_reason: 'left',
    },
    { ...CLINIC, id: 'par_3', group: 'כללית' },
  ])
  const name = section.getByText('مستشفى الأمل')
  expect([name.tagName, name.dir]).toEqual(['BDI', 'auto'])
  expect(section.getByText('site-5d556e03').tagName).toBe('CODE')
  expect(section.getByText(long).closest('tr')?.textContent).toContain('revoked')
  expect(section.getAllByText('clinic-7')).toHaveLength(1)
  expect(section.getByText('כללית').tagName).toBe('BDI')
})

const WAITING: Participant = { ...CLINIC, state: 'pending' }

test('a participant that waits is approved', async () => {
  const section = await visit([WAITING])
  fireEvent.click(await section.findByRole('button', { name: 'Approve' }))
  await section.findByText('quiet')
  expect(asked).toEqual([{ path: '/experiments/exp_1/participants/clinic-7:approve', body: undefined }])
  expect(section.queryByRole('button', { name: /^(Approve|Refuse)$/ })).toBeNull()
})

test('a refusal needs a confirmation, and sends the participant the reason', async () => {
  const section = await visit([WAITING])
  fireEvent.click(await section.findByRole('button', { name: 'Refuse' }))
  const dialog = within(document.querySelector<HTMLDialogElement>('dialog[open]') ?? document.body)
  expect(asked).toEqual([])
  fireEvent.change(dialog.getByLabelText(/Reason/), { target: { value: 'no contract' } })
  fireEvent.click(dialog.getByText('Refuse it'))
  await section.findByText('refused')
  expect(asked).toEqual([{ path: '/experiments/exp_1/participants/clinic-7:refuse', body: { reason: 'no contract' } }])
})

test('a viewer sees who waits and decides nothing', async () => {
  role = 'viewer'
  const section = await visit([WAITING])
  await section.findByText('pending')
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(section.queryByRole('button', { name: /^(Approve|Refuse)$/ })).toBeNull()
})

test('a dialog outlives its row, which a refetch removes', async () => {
  const section = await visit([WAITING])
  fireEvent.change(section.getByRole('searchbox'), { target: { value: 'clinic' } })
  fireEvent.click(await section.findByRole('button', { name: 'Refuse' }))
  participants = [{ ...WAITING, display_name: 'renamed', name: 'other' }]
  await queryClient.invalidateQueries()
  const dialog = document.querySelector<HTMLDialogElement>('dialog[open]')
  expect(dialog?.textContent).toContain('Refuse “clinic-7”?')
  fireEvent.click(within(dialog ?? document.body).getByText('Not now'))
  await section.findByText('No participant matches.')
})
