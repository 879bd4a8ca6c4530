import { useState, type FormEvent } from 'react';
import { apiResult } from '../api/http';
import type { Room } from '../generated/api';
import { navigate, roomPath } from '../router';
import { useClient } from '../session/session';
import { text } from '../text';
import { Button } from '../ui/button';
import { Dialog } from '../ui/dialog';
import { Field } from '../ui/field';
import { showNewRoom, showPanel } from '../view';

export function NewRoom() {
  const client = useClient();
  const [problem, setProblem] = useState<string>();
  const close = () => showNewRoom(false);
  const create = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const name = new FormData(event.currentTarget).get('name');
    try {
      const room = await apiResult<Room>('POST', '/api/rooms', { name });
      await client.loader.refreshRooms();
      close();
      navigate(roomPath(room.id));
      showPanel({ kind: 'details', roomId: room.id });
    } catch (failure) {
      setProblem(failure instanceof Error ? failure.message : text.failed);
    }
  };
  return (
    <Dialog open onClose={close} title={text.rooms.create} lead={text.rooms.createLead}>
      <form onSubmit={(event) => void create(event)} className="space-y-4">
        <Field
          label={text.rooms.name}
          name="name"
          placeholder={text.rooms.namePlaceholder}
          maxLength={100}
          problem={problem}
          autoFocus
          required
        />
        <div className="flex justify-end gap-2">
          <Button variant="plain" onClick={close}>
            {text.cancel}
          </Button>
          <Button variant="primary" type="submit">
            {text.rooms.createSubmit}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
