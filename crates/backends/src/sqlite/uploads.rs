//! Uploads and the contents that no upload refers to: reads, changes, and conversion between rows and model types.

use super::rows::{all, number, one, run, shared, text, time};
use super::{Sql, SqlTables};
use parlor_engine::Fault;
use parlor_engine::changes::UploadChange;
use parlor_engine::ports::ReadUploads;
use parlor_model::{BlobDigest, File, MediaType, MessageId, Upload, UploadId, UploadPurpose, UserId};
use rusqlite::{Connection, Row};

impl<C: Sql> ReadUploads for SqlTables<C> {
    fn upload(&mut self, id: &UploadId) -> Result<Option<Upload>, Fault> {
        let query = format!("SELECT {} FROM uploads WHERE id = ?1", UPLOAD);
        one(self.sql()?, &query, &[&id.as_str()], upload)
    }

    fn uploads_waiting(&mut self, owner: &UserId) -> Result<usize, Fault> {
        let query = "SELECT count(*) FROM uploads WHERE owner = ?1 AND message IS NULL AND avatar = 0";
        let count = one(self.sql()?, query, &[&owner.as_str()], |row| row.get::<_, i64>(0))?;
        Ok(count.unwrap_or_default() as usize)
    }

    fn avatars(&mut self, owner: &UserId) -> Result<Vec<Upload>, Fault> {
        let query = format!(
            "SELECT {} FROM uploads WHERE owner = ?1 AND message IS NULL AND avatar = 1 ORDER BY created_at, id",
            UPLOAD
        );
        all(self.sql()?, &query, &[&owner.as_str()], upload)
    }

    fn released(&mut self, limit: usize) -> Result<Vec<BlobDigest>, Fault> {
        let query = "SELECT digest FROM released ORDER BY digest LIMIT ?1";
        all(self.sql()?, query, &[&number(limit)], |row| digest(row, 0))
    }

    fn refers_to(&mut self, digest: &BlobDigest) -> Result<bool, Fault> {
        let query = "SELECT 1 FROM uploads WHERE digest = ?1 LIMIT 1";
        Ok(one(self.sql()?, query, &[&digest.0], |_| Ok(()))?.is_some())
    }
}

pub fn apply(sql: &Connection, change: &UploadChange) -> Result<(), Fault> {
    match change {
        UploadChange::PutUpload(upload) => put_upload(sql, upload)?,
        UploadChange::Attach { upload, message } => {
            let query = "UPDATE uploads SET message = ?2 WHERE id = ?1";
            run(sql, query, &[&upload.as_str(), &message.as_str()])?;
        }
        UploadChange::RemoveUpload(upload) => {
            run(sql, "DELETE FROM uploads WHERE id = ?1", &[&upload.as_str()])?;
        }
        UploadChange::ForgetReleased(digests) => {
            for digest in digests {
                run(sql, "DELETE FROM released WHERE digest = ?1", &[&digest.0])?;
            }
        }
    }
    Ok(())
}

fn put_upload(sql: &Connection, upload: &Upload) -> Result<(), Fault> {
    let message = match &upload.purpose {
        UploadPurpose::Message(message) => Some(message.as_str()),
        UploadPurpose::Unattached | UploadPurpose::Avatar => None,
    };
    run(
        sql,
        "INSERT INTO uploads VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        &[
            &upload.id.as_str(),
            &upload.owner.as_str(),
            &&*upload.file.name,
            &upload.file.media.as_str(),
            &(upload.file.size as i64),
            &upload.digest.0,
            &upload.created_at.0,
            &(upload.purpose == UploadPurpose::Avatar),
            &message,
        ],
    )?;
    Ok(())
}

pub const UPLOAD: &str = "id, owner, name, media, size, digest, created_at, avatar, message";

pub fn upload(row: &Row<'_>) -> rusqlite::Result<Upload> {
    let media = MediaType::parse(row.get_ref(3)?.as_str()?).ok_or(rusqlite::Error::InvalidQuery)?;
    Ok(Upload {
        id: UploadId::stored(shared(row, 0)?),
        owner: UserId::stored(shared(row, 1)?),
        file: File { name: text(row, 2)?, media, size: row.get::<_, i64>(4)? as u64 },
        digest: digest(row, 5)?,
        created_at: time(row, 6)?,
        purpose: match row.get_ref(8)?.as_str_or_null()? {
            Some(message) => UploadPurpose::Message(MessageId::stored(message)),
            None if row.get(7)? => UploadPurpose::Avatar,
            None => UploadPurpose::Unattached,
        },
    })
}

pub fn digest(row: &Row<'_>, index: usize) -> rusqlite::Result<BlobDigest> {
    row.get(index).map(BlobDigest)
}
