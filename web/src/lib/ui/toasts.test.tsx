// @vitest-environment jsdom
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react'
import { afterEach, expect, test } from 'vitest'

import { dismissNewestToast, dismissToast, shownToasts, toastFailure, Toasts } from './toasts'

const UNREACHABLE = {
  code: 'server.unreachable',
  title: 'The server cannot be reached',
  detail: 'No answer.',
  errors: [],
}
const REFUSED = { code: 'experiment.conflict', title: 'Not now', detail: '', requestId: 'req_7', errors: [] }

afterEach(() => {
  for (const { action } of shownToasts()) dismissToast(action)
  cleanup()
})

function fail(action: string, problem = UNREACHABLE) {
  act(() => {
    toastFailure(action, problem)
  })
}

const headings = () => screen.queryAllByRole('heading').map(({ textContent }) => textContent)

test('a failure is announced with what to do, its code and its request', () => {
  render(<Toasts />)
  const region = screen.getByRole('status')
  expect([region.getAttribute('aria-live'), region.textContent]).toEqual(['polite', ''])
  fail('Pause', REFUSED)
  expect(region.textContent).toContain('Pause failed')
  expect(region.textContent).toContain('Reload the page')
  expect(region.textContent).toContain('experiment.conflict · request req_7')
})

test('the same action has one toast, and three are the most', () => {
  render(<Toasts />)
  for (const action of ['Pause', 'Pause', 'Archive', 'Approve', 'Resume']) fail(action)
  expect(headings()).toEqual(['Archive failed', 'Approve failed', 'Resume failed'])
})

test('a toast is dismissed by its button, by a key or by success', () => {
  render(<Toasts />)
  for (const action of ['Pause', 'Archive', 'Approve']) fail(action)
  fireEvent.click(screen.getByRole('button', { name: 'Dismiss: Archive failed' }))
  expect(headings()).toEqual(['Pause failed', 'Approve failed'])
  act(() => {
    dismissNewestToast()
  })
  expect(headings()).toEqual(['Pause failed'])
  act(() => {
    dismissToast('Pause')
  })
  expect(dismissNewestToast()).toBe(false)
  expect(headings()).toEqual([])
})
