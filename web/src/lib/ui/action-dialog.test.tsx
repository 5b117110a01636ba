// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { ActionDialog } from './action-dialog'

beforeEach(() => {
  // jsdom has the element but not its methods.
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true
  }
  HTMLDialogElement.prototype.close = function () {
    this.open = false
  }
})

afterEach(cleanup)

const OLD = { code: 'user.conflict', title: 'There is such a user already', detail: '', errors: [] }

function open(succeeds: boolean) {
  render(
    <ActionDialog
      label="New user"
      confirm="Create"
      title="Create an account"
      dismiss="Close"
      pending={false}
      problem={OLD}
      onSubmit={() => Promise.resolve(succeeds)}
    >
      <input aria-label="Password" name="password" type="password" />
    </ActionDialog>,
  )
  fireEvent.click(screen.getByText('New user'))
  const field = screen.getByLabelText<HTMLInputElement>('Password')
  fireEvent.change(field, { target: { value: 'a secret' } })
  return field
}

test('an action that succeeded leaves no input behind', async () => {
  const field = open(true)
  fireEvent.click(screen.getByText('Create'))
  await waitFor(() => {
    expect(field.value).toBe('')
  })
})

test('inputs stay after a failure, and its reason until the dialog is opened again', async () => {
  const field = open(false)
  expect(screen.queryByText(OLD.title)).toBeNull()
  fireEvent.click(screen.getByText('Create'))
  expect(await screen.findByText(OLD.title)).toBeTruthy()
  expect(field.value).toBe('a secret')
  fireEvent.click(screen.getByText('Close'))
  fireEvent.click(screen.getByText('New user'))
  expect(screen.queryByText(OLD.title)).toBeNull()
})

test('a problem without a known next step has none', async () => {
  open(false)
  fireEvent.click(screen.getByText('Create'))
  await screen.findByText(OLD.title)
  expect(screen.queryByText(/What to do next/)).toBeNull()
})
